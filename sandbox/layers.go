package sandbox

// Layers are the walls that writ.Enforcement names.
const (
	LayerUserNamespace    = "user-namespace"
	LayerPIDNamespace     = "pid-namespace"
	LayerNetworkNamespace = "network-namespace"
	LayerIPCNamespace     = "ipc-namespace"
	LayerUTSNamespace     = "uts-namespace"
	LayerCgroupNamespace  = "cgroup-namespace"
	LayerMountView        = "mount-view"        // nothing of the host has a name but what args.go lists
	LayerNoNewPrivileges  = "no-new-privileges" //
	LayerNoCapabilities   = "no-capabilities"   // none effective, permitted, inheritable, ambient or in the bounding set
	LayerNestedUsernsOff  = "nested-userns-off" // bwrap asserted it
	LayerSeccomp          = "seccomp"           // our filter is loaded
	LayerSeparateUID      = "separate-uid"      // outside, a box is a user of its own; needs a server that runs as root, and no workspace
	LayerMemoryCgroup     = layerMemory         //
	LayerPidsCgroup       = layerPids           //
	LayerCPUCgroup        = layerCPU            //
	LayerRlimits          = "rlimits"           // set by the jail before the program starts, or it does not start
)

// namespaceLayers are the layers in the order of jail.Namespaces.
var namespaceLayers = [...]string{
	LayerUserNamespace, LayerMountView, LayerPIDNamespace, LayerNetworkNamespace,
	LayerIPCNamespace, LayerUTSNamespace, LayerCgroupNamespace,
}
