package room_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"writ"
	"writ/room"
)

func TestRoom(t *testing.T) {
	m := room.New[string](10)
	take := func(who string, n int64, words string) {
		t.Helper()
		err := m.Take(who, n)
		if (err == nil) != (words == "") || words != "" && (writ.KindOf(err) != writ.Exhausted || !strings.Contains(writ.Message(err), words)) {
			t.Errorf("%s takes %d: %v, want %q", who, n, err, words)
		}
	}
	take("ada", 6, "yours") // one has half at most, also when all is free
	take("ada", 5, "")
	take("ada", 1, "yours")
	take("bob", 4, "")
	take("eve", 2, "others")
	take("eve", 1, "")
	m.Give("ada", 5)
	take("eve", 4, "")
	take("eve", 1, "yours")
	m.Give("bob", 4)
	m.Give("eve", 5)
	take("ada", 5, "")
	take("bob", 5, "")
}

// TestManyAtOnce: what is taken is never more than there is.
func TestManyAtOnce(t *testing.T) {
	m := room.New[int](100)
	var mu sync.Mutex
	var taken, top int64
	var wg sync.WaitGroup
	for who := range 8 {
		wg.Go(func() {
			for range 500 {
				if m.Take(who, 30) != nil {
					continue
				}
				mu.Lock()
				taken += 30
				top = max(top, taken)
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				taken -= 30
				mu.Unlock()
				m.Give(who, 30)
			}
		})
	}
	wg.Wait()
	if top == 0 || top > 100 {
		t.Errorf("%d of 100 were taken at a time", top)
	}
	for _, who := range []int{1, 2} {
		if err := m.Take(who, 50); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
}
