package main

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"writ"
)

// Who waits for a data folder that stays in use is told who holds it, after a bounded
// time; one that is about to be served is waited for.
func TestAFolderInUseIsWaitedForAndThenRefused(t *testing.T) {
	data := t.TempDir() + "/data"
	held, err := openFolder(data, new(strings.Builder))
	if err != nil {
		t.Fatal(err)
	}
	defer held.release()
	var said strings.Builder
	c, e := &cli{Data: data}, env{stderr: &said}
	joined := func() bool { return answers(data + "/" + socketName) }
	own := func() (*system, error) {
		return openOwn(t.Context(), c, e, onceSocketName, func(places) error { return nil })
	}
	_, err = reach(t.Context(), e, 50*time.Millisecond, joined, own)
	if !errors.Is(err, errFolderInUse) || writ.KindOf(err) != writ.Unavailable || !strings.Contains(writ.Message(err), "is in use by writ pid ") {
		t.Errorf("got %v (kind %v)", err, writ.KindOf(err))
	}
	if said.Len() > 0 {
		t.Errorf("said %q about a wait that was over at once", said.String())
	}

	// A server that is about to answer is found.
	ln := make(chan net.Listener, 1)
	time.AfterFunc(20*time.Millisecond, func() {
		l, err := net.Listen("unix", data+"/"+socketName)
		if err != nil {
			t.Error(err)
		}
		ln <- l
	})
	if s, err := reach(t.Context(), e, time.Minute, joined, own); err != nil || s != nil {
		t.Errorf("got %v, %v", s, err)
	}
	if l := <-ln; l != nil {
		l.Close()
	}
}

func TestExposedAddresses(t *testing.T) {
	for ip, want := range map[string]bool{"127.0.0.1": false, "127.9.9.9": false, "::1": false, "0.0.0.0": true, "::": true, "192.0.2.1": true} {
		if got := exposed(&net.TCPAddr{IP: net.ParseIP(ip), Port: 80}); got != want {
			t.Errorf("%s: exposed %v, want %v", ip, got, want)
		}
	}
	if !exposed(&net.UnixAddr{}) {
		t.Error("an address that is not known is taken for loopback")
	}
}
