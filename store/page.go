package store

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"writ"
)

// pageSize is how many rows of p are wanted.
func pageSize(p writ.Page) (int, error) {
	switch {
	case p.Limit == 0:
		return writ.DefaultPage, nil
	case p.Limit < 0 || p.Limit > writ.MaxPage:
		return 0, &writ.Error{Kind: writ.Invalid, Op: "list", Msg: fmt.Sprintf("limit is %d: want 1 to %d", p.Limit, writ.MaxPage)}
	}
	return p.Limit, nil
}

// cursor names the last row of a page in a list sorted by newest first. It holds
// the row's place rather than a count, so that rows added at the front of the list
// neither repeat nor hide one.
type cursor struct {
	created int64 // milliseconds
	id      string
}

func cursorOf(created time.Time, id string) cursor { return cursor{millis(created), id} }

func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.created, 10) + " " + c.id))
}

func parseCursor(s string) (cursor, error) {
	bad := &writ.Error{Kind: writ.Invalid, Op: "list", Msg: `cursor is not one that a list answered as "next": start again without one`}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return cursor{}, bad
	}
	ms, id, ok := strings.Cut(string(b), " ")
	created, err := strconv.ParseInt(ms, 10, 64)
	c := cursor{created, id}
	if !ok || err != nil || id == "" || !storable([]any{id}) || c.String() != s {
		return cursor{}, bad
	}
	return c, nil
}

// newestFirst is the end of a query for one page beneath the conditions: where,
// order and limit. It asks for one row more than the page has, which says whether
// there is a next page.
func newestFirst(c *conditions, p writ.Page) (tail string, size int, err error) {
	size, err = pageSize(p)
	if err != nil {
		return "", 0, err
	}
	if p.Cursor != "" {
		at, err := parseCursor(p.Cursor)
		if err != nil {
			return "", 0, err
		}
		c.terms = append(c.terms, "(created, id) < ("+c.arg(at.created)+", "+c.arg(at.id)+")")
	}
	return c.where() + " ORDER BY created DESC, id DESC LIMIT " + strconv.Itoa(size+1), size, nil
}

// cut takes the surplus row off a page and says where the next one starts.
func cut[T any](rows []T, size int, at func(T) cursor) ([]T, string) {
	if len(rows) <= size {
		return rows, ""
	}
	rows = rows[:size]
	return rows, at(rows[size-1]).String()
}

// narrowed are the conditions of a list that is narrowed to a tenant, an identity and
// states; what is empty does not narrow.
func narrowed[S ~string](tenant writ.Tenant, identity writ.IdentityID, states []S) *conditions {
	var c conditions
	c.equal("tenant", string(tenant))
	c.equal("identity", string(identity))
	in(&c, "state", states)
	return &c
}

// page reads one page of the rows beneath the conditions, newest first, and the
// cursor of the next.
func page[T any](ctx context.Context, tx *Tx, what, columns string, c *conditions, p writ.Page, scan func(scanner) (T, error), at func(T) cursor) ([]T, string, error) {
	tail, size, err := newestFirst(c, p)
	if err != nil {
		return nil, "", err
	}
	rows, err := all(ctx, tx, what, columns+tail, scan, c.args...)
	if err != nil {
		return nil, "", err
	}
	rows, next := cut(rows, size, at)
	return rows, next, nil
}

// checkStep refuses a compare-and-set that names no state to leave, or that would
// leave a terminal one.
func checkStep[S interface {
	~string
	Terminal() bool
}](what, id string, to S, from []S) error {
	for _, s := range from {
		if s.Terminal() && s != to {
			return fmt.Errorf("update %s %s: one that is %s never becomes %s", what, id, s, to)
		}
	}
	if len(from) == 0 {
		return fmt.Errorf("update %s %s: no state to update from", what, id)
	}
	return nil
}
