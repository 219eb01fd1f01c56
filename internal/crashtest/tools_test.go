package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
)

// tools is one agent's way to the workspace tools of a server that may be away for a
// while. It is for one goroutine.
type tools struct {
	s       *server
	key     writ.Secret
	session *sdk.ClientSession // nil when there is none
}

// answer is what a tool said, of each kind some.
type answer struct {
	Status    writ.PatchStatus   `json:"status"`
	Operation writ.OperationID   `json:"operation_id"`
	Code      string             `json:"code"`
	Message   string             `json:"message"`
	Approval  writ.ApprovalID    `json:"approval_id"`
	State     writ.ApprovalState `json:"state"`
	Resumed   struct {
		Status    writ.PatchStatus `json:"status"`
		Operation writ.OperationID `json:"operation_id"`
	} `json:"apply_patch"`
}

// patchRetry is the time between two tries to reach a server.
const patchRetry = 20 * time.Millisecond

var endpoint = regexp.MustCompile(`(?m)^MCP: +(http://\S+)`)

// call calls a tool until it is answered. ok is false when ctx ended first, or nothing
// was answered for too long.
func (t *tools) call(ctx context.Context, name string, args map[string]any) (a answer, ok bool) {
	for deadline := time.Now().Add(patience); ; {
		a = answer{}
		text, err := t.try(ctx, name, args)
		if err == nil {
			if err := json.Unmarshal([]byte(text), &a); err != nil {
				t.s.t.Errorf("%s: %v: %s", name, err, text)
			}
			// A server that is stopping, or whose store is, says so and has begun nothing.
			if a.Code != "TIMEOUT" && !strings.Contains(a.Message, "the server is stopping") {
				return a, true
			}
		}
		if time.Now().After(deadline) {
			t.s.t.Errorf("%s is not answered: %v, %+v", name, err, a)
			return a, false
		}
		if !pause(ctx, patchRetry) {
			return a, false
		}
	}
}

func (t *tools) try(ctx context.Context, name string, args map[string]any) (string, error) {
	if t.session == nil {
		if err := t.connect(ctx); err != nil {
			return "", err
		}
	}
	res, err := t.session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.close()
		return "", err
	}
	text, ok := res.Content[0].(*sdk.TextContent)
	if !ok || len(res.Content) != 1 {
		return "", fmt.Errorf("a result of another form: %+v", res)
	}
	return text.Text, nil
}

// connect begins a session with the server that started last.
func (t *tools) connect(ctx context.Context) error {
	said := endpoint.FindAllStringSubmatch(t.s.logged(1<<20), -1)
	if len(said) == 0 {
		return fmt.Errorf("no server has said where its tools are")
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "crashtest", Version: "1"}, nil)
	transport := &sdk.StreamableClientTransport{
		Endpoint: said[len(said)-1][1], MaxRetries: -1, DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: bearer{t.key, &http.Transport{DisableKeepAlives: true}}},
	}
	session, err := client.Connect(ctx, transport, nil)
	t.session = session
	return err
}

func (t *tools) close() {
	if t.session != nil {
		_ = t.session.Close() // mostly the server is gone
	}
	t.session = nil
}

type bearer struct {
	key  writ.Secret
	next http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b.key))
	return b.next.RoundTrip(r)
}
