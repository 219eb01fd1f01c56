package session

import (
	"context"
	"testing"

	"writ"
)

// TestDiscard: a session is gone with what is in it, and counts no more; another one of the
// same user, and one that is another's, stay.
func TestDiscard(t *testing.T) {
	d := newDesk(t, Defaults())
	ada, bob := user("ada"), user("bob")
	in, other := d.create(t, ada, own), d.create(t, ada, own)
	one := d.put(t, ada, own, in, text("a.txt", "aa"))
	d.put(t, ada, own, in, text("b.txt", "b"))
	kept := d.put(t, ada, own, other, text("a.txt", "aa"))
	if err := d.Discard(context.Background(), bob, own, in); writ.KindOf(err) != writ.NotFound {
		t.Errorf("another user's: %v", err)
	}
	if got, err := d.bytesOf(ada, own, in, one.ID); got != "aa" || err != nil {
		t.Errorf("after another user tried: %q, %v", got, err)
	}
	if err := d.Discard(context.Background(), ada, own, in); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Find(context.Background(), ada, own, in); writ.KindOf(err) != writ.NotFound {
		t.Errorf("afterwards: %v", err)
	}
	if got, err := d.bytesOf(ada, own, other, kept.ID); got != "aa" || err != nil {
		t.Errorf("the same bytes elsewhere: %q, %v", got, err)
	}
	if got, want := testTotals(t, d), (writ.SessionTotals{Sessions: 1, Objects: 1, Bytes: 2}); got != want {
		t.Errorf("totals are %+v, want %+v", got, want)
	}
	if err := d.Discard(context.Background(), ada, own, in); writ.KindOf(err) != writ.NotFound {
		t.Errorf("again: %v", err)
	}
}
