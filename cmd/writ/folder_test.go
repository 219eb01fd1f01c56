package main

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A process that is killed while it starts another leaves a copy of itself for a moment,
// which has its lock: the next one waits for that, and does not take it for a server.
func TestALockOfADeadProcessIsWaitedFor(t *testing.T) {
	data := t.TempDir()
	lock, err := lockFolder(data)
	if err != nil {
		t.Fatal(err)
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := lock.WriteAt(fmt.Appendf(nil, "%-20d since then\n", dead.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	twin := exec.Command("cat")
	twin.ExtraFiles = []*os.File{lock}
	hold, err := twin.StdinPipe()
	if err == nil {
		err = twin.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { hold.Close() })
	again, err := lockFolder(data)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if err := twin.Wait(); err != nil {
		t.Error(err)
	}
}
