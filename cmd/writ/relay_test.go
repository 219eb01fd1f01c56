package main

import (
	"bufio"
	"context"
	"io"
	"testing"

	"writ/internal/testkit"
)

// A command that passes messages on ends when it is told to, also when its client reads
// nothing any more.
func TestRelayEndsThoughNobodyReads(t *testing.T) {
	conn, server := pair(t)
	go func() { // ends with the connection
		if _, err := bufio.NewReader(server).ReadString('\n'); err == nil {
			_, _ = io.WriteString(server, "{}\nthe first answer\nthe second\n")
		}
	}()
	stdin, questions := io.Pipe()
	answers, stdout := io.Pipe()
	defer questions.Close()
	defer answers.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan error, 1)
	go func() {
		over <- relay(ctx, conn, sessionOrder{Version: sessionVersion, Folder: "/"}, env{stdin: stdin, stdout: stdout, stderr: io.Discard})
	}()
	if _, err := answers.Read(make([]byte, 1)); err != nil { // the rest waits
		t.Fatal(err)
	}
	cancel()
	if err := testkit.Receive(t, "the end of the command", over); err != nil {
		t.Error(err)
	}
}
