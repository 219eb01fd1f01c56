package writ

// Held is the error of a request that waits for approval. The first *Error in its
// chain has Code APPROVAL_REQUIRED and says what to do.
type Held struct {
	Approval ApprovalID
	// Self: whoever asked may lift the hold. Else an operator who did not ask must.
	Self bool
	Err  error
}

func (h *Held) Error() string { return h.Err.Error() }
func (h *Held) Unwrap() error { return h.Err }

// OperationError is the error of an operation that has its row in the ledger
// (spec/02 §5.14).
type OperationError struct {
	Operation OperationID
	Err       error
}

func (o *OperationError) Error() string { return o.Err.Error() }
func (o *OperationError) Unwrap() error { return o.Err }

// ToolCall is a call of a tool that can be held before it is made: one field is set.
type ToolCall struct {
	Patch   *PatchRequest
	Command *CommandRequest
}

// Resumed is what a granted call came to: an operation, or the process that was started
// or got its input.
type Resumed struct {
	Approval  Approval   `json:"approval"`
	Operation *Operation `json:"operation,omitempty"`
	Process   *Process   `json:"process,omitempty"`
}
