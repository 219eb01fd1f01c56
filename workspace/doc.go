// Package workspace is the folders that tools may work in: which there are, and who
// is changing one right now.
//
// A [Registry] is the operator's list of workspaces. It comes from the server's
// configuration, from a registry file in the form of spec/02 §3.1 ([LoadFile]), or is
// the one folder that somebody works in ([Folder]). It does not change: a server that
// reads its configuration anew makes a new one.
//
// [Leases] keep changes apart: one at a time for one root, whatever the ids under
// which the root is registered and also when one root is beneath the other; the
// others wait in the order in which they came, but not for a process that runs there,
// which refuses them. They are of this process's memory and end with it.
//
// It promises that a caller sees no workspace of another tenant, and cannot tell one
// from none; that a registry with any fault is refused as a whole, with every fault
// named; and that a lease is held by one holder at a time.
//
// It refuses to know what a workspace holds: it opens no file beneath a root. Whether
// a caller may do something is the gateway's to say.
//
// A registry file and a configuration are trusted, being the operator's; therefore
// LoadFile refuses a file that others may write. Ids that callers name are hostile, and
// so is what is at the place of a root: it may be anything, or gone.
package workspace
