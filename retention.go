package writ

// FileUsage is what the code interpreter keeps for its users, those of all tenants.
type FileUsage struct {
	Sessions     int64       `json:"sessions"`
	Objects      int64       `json:"objects"`
	Bytes        int64       `json:"bytes"`         // of objects, each counted as if no other had the same ones
	Runtimes     int64       `json:"runtimes"`      // runtime sessions
	RuntimeBytes int64       `json:"runtime_bytes"` // of their files
	Removed      FileRemoval `json:"removed"`       // since the server was started
}

// FileRemoval is what was removed since its time was over, or would be.
type FileRemoval struct {
	Sessions     int64 `json:"sessions"`
	Objects      int64 `json:"objects"`
	Bytes        int64 `json:"bytes"` // of objects
	Runtimes     int64 `json:"runtimes"`
	RuntimeBytes int64 `json:"runtime_bytes"`
	Bodies       int64 `json:"bodies"` // code, outputs and names of files of what users ran
	Blobs        int64 `json:"blobs"`  // that nobody named any more
	BlobBytes    int64 `json:"blob_bytes"`
}

// Add adds what more was removed.
func (r *FileRemoval) Add(more FileRemoval) {
	r.Sessions += more.Sessions
	r.Objects += more.Objects
	r.Bytes += more.Bytes
	r.Runtimes += more.Runtimes
	r.RuntimeBytes += more.RuntimeBytes
	r.Bodies += more.Bodies
	r.Blobs += more.Blobs
	r.BlobBytes += more.BlobBytes
}

// FileRemovalRequest asks for a pass that removes what is over.
type FileRemovalRequest struct {
	DryRun bool `json:"dry_run,omitempty"` // only count
}

// Validate lets every request through.
func (FileRemovalRequest) Validate() error { return nil }
