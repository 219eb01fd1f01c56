package mcp

// instructions is what a client's model is told about the server as a whole
// (spec/02 §2).
const instructions = `Tools for the files of registered workspaces. A workspace_id names a workspace, it is no credential; workspace_info without arguments lists the ids you may use.

Files. Use relative paths, with / and beneath the workspace's root; absolute paths, paths that lead out, symbolic links and special files are refused. read answers a window: offset and limit are bytes, next_offset is where more is and is absent at the end, content_lossy says that bytes which are not UTF-8 were replaced. version is a hash of the whole file. find answers a page: offset and limit count paths, next_offset is the next page, incomplete says that the search was cut short, and when listing_version changes between pages start again at 0. A limit of 0 or above the cap is OUTPUT_LIMIT.

Patches. apply_patch takes the V4A format (*** Begin Patch ... *** End Patch) and changes all files or none. Give the versions you read in expected_versions: VERSION_CONFLICT means that a file moved on, so read it again and write a new patch. Give an operation_key to be able to ask operation_status what became of a lost answer; the same key and patch is answered again and not applied twice. status=unknown means that it may have been applied: look at the files, do not retry blindly; then use a new key.

One change at a time. A patch holds the lease of its workspace; others wait in line, RESOURCE_QUEUE_FULL means that the line is full, and WORKSPACE_BUSY that a running command holds the lease: wait for it, or end it.

Approvals. With approvals=confirm a change is answered with APPROVAL_REQUIRED and an approval_id: approval_resolve grants or denies it, operation_resume then carries it out. The hold is neither privilege nor isolation, and the same caller can grant it: ask your user first. With approvals=review only an operator who is not you can decide; wait, and call operation_resume afterwards.

Commands. Only where tools/list shows exec_command. Ending a request does not end the process: its lifetime is owned by the runner, a disconnect keeps it running, and a saved process_id works from a new session; the end of the runner or the server ends it. A tty starts as a 24x80 PTY and process_resize changes it; tty_size is not an argument. PROCESS_NOT_TTY and PROCESS_NOT_RUNNING say why a resize was refused. dispatch_status=unknown means that the command may be running: do not retry blindly. process_status says running or exited, and why; EOF of the output is not success, and output_lost says that output was dropped. workspace_info reports the sandbox and the network; no enforcement is not permission. An enabled network goes through a managed proxy.

Work. work_open says that you begin and work_finish that you are done; between them your user can send you instructions. Results of other tools say in coordination how many wait (pending_user_items), as counts. Claim user intents only at major checkpoints: steer_claim_next gives you the next one, and steer_complete says that you did it, or that you could not. steer_status shows what you have claimed; a stop_notice there means that your user had your commands ended.`
