package remote

import (
	"context"

	"writ"
)

// Processes is what is served of commands in workspaces, and what a ProcessesClient is.
// The contracts of its methods are those of package runner.
type Processes interface {
	Start(ctx context.Context, o writ.ProcessOrder) error
	Input(ctx context.Context, id writ.ProcessID, data []byte) (int, error)
	CloseInput(ctx context.Context, id writ.ProcessID) error
	Output(ctx context.Context, id writ.ProcessID, q writ.OutputQuery) (writ.ProcessOutput, error)
	Status(ctx context.Context, id writ.ProcessID) (writ.ProcessStatus, error)
	Resize(ctx context.Context, id writ.ProcessID, size writ.TerminalSize) error
	Terminate(ctx context.Context, id writ.ProcessID, k writ.Kill) error
	Processes(ctx context.Context) ([]writ.ProcessStatus, error)
	Exits(ctx context.Context, fn func(writ.ProcessStatus) error) error
}

const (
	methodProcessStart      = "ProcessStart"
	methodProcessInput      = "ProcessInput"
	methodProcessCloseInput = "ProcessCloseInput"
	methodProcessOutput     = "ProcessOutput"
	methodProcessStatus     = "ProcessStatus"
	methodProcessResize     = "ProcessResize"
	methodProcessTerminate  = "ProcessTerminate"
	methodProcessList       = "ProcessList"
	methodProcessExits      = "ProcessExits"
)

// takenTrailer says, beside an error of ProcessInput, how many bytes went in.
const takenTrailer = "writ-taken"

// startOrder is the request of ProcessStart.
type startOrder struct {
	Order writ.ProcessOrder `json:"order"`
}

// inputOrder is the request of ProcessInput.
type inputOrder struct {
	Process writ.ProcessID `json:"process_id"`
	Data    []byte         `json:"data"` // base64 in JSON
}

// inputTaken is the answer of ProcessInput.
type inputTaken struct {
	Taken int `json:"taken"`
}

// processOrder is the request of ProcessCloseInput and ProcessStatus.
type processOrder struct {
	Process writ.ProcessID `json:"process_id"`
}

// outputOrder is the request of ProcessOutput.
type outputOrder struct {
	Process writ.ProcessID   `json:"process_id"`
	Query   writ.OutputQuery `json:"query"`
}

// resizeOrder is the request of ProcessResize.
type resizeOrder struct {
	Process writ.ProcessID    `json:"process_id"`
	Size    writ.TerminalSize `json:"size"`
}

// terminateOrder is the request of ProcessTerminate.
type terminateOrder struct {
	Process writ.ProcessID `json:"process_id"`
	Kill    writ.Kill      `json:"kill"`
}
