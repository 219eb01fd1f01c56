package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"writ"
	"writ/audit"
	"writ/client"
)

type auditCmd struct {
	List       auditListCmd       `cmd:"" help:"List events in the order of the log."`
	Show       auditShowCmd       `cmd:"" help:"Show one event."`
	Verify     auditVerifyCmd     `cmd:"" help:"Recompute the whole log and compare it with its signed head and your checkpoints."`
	Checkpoint auditCheckpointCmd `cmd:"" help:"Print the signed head. Keep it elsewhere: it shows a later truncation."`
	Prove      auditProveCmd      `cmd:"" help:"Print a proof that one event is in the log."`
	Check      auditCheckCmd      `cmd:"" help:"Check a proof, without a server."`
	Export     auditExportCmd     `cmd:"" help:"Write the log as lines of JSON."`
}

type eventFlags struct {
	Task   writ.TaskID      `help:"Only events of this task."`
	Type   []writ.EventType `help:"Only events of these types."`
	Tenant writ.Tenant      `help:"Only events of this tenant; only the owner of the data folder may name another than its own."`
	After  int64            `help:"Only events after this number." default:"-1"`
}

func (f eventFlags) filter(limit int) writ.EventFilter {
	return writ.EventFilter{Task: f.Task, Types: f.Type, Tenant: f.Tenant, After: f.After, Limit: limit}
}

type auditListCmd struct {
	eventFlags
	Limit int  `help:"How many." default:"100"`
	JSON  bool `name:"json" help:"One JSON object a line."`
}

func (l *auditListCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		events, more, err := cl.Events(ctx, l.filter(l.Limit))
		if err != nil {
			return err
		}
		if more && len(events) > 0 {
			defer fmt.Fprintf(e.stderr, "more with --after %d\n", events[len(events)-1].Seq)
		}
		return list(e.stdout, l.JSON, events, "SEQ TIME TYPE OF ACTOR WHAT", func(ev writ.Event) []string {
			actor := "server"
			if ev.Actor != (writ.Ref{}) {
				actor = ev.Actor.String()
			}
			return []string{fmt.Sprint(ev.Seq), when(ev.Time), string(ev.Type), whatOf(ev), actor, what(ev)}
		})
	})
}

// whatOf is the task that an event is of, else the operation, the process, the intent, the
// work or what is held.
func whatOf(ev writ.Event) string {
	d := ev.Data
	return cmp.Or(string(ev.Task), string(d.Operation), string(d.Process), string(d.Intent), string(d.Work), string(ev.Approval))
}

// what is the point of an event in a few words.
func what(ev writ.Event) string {
	d := ev.Data
	s := ""
	add := func(format string, args ...any) {
		if s != "" {
			s += " "
		}
		s += fmt.Sprintf(format, args...)
	}
	if d.Identity != "" {
		add("%s", d.Identity)
	}
	if d.Workspace != "" {
		add("%s", d.Workspace)
	}
	if d.Program != "" {
		add("%s", d.Program)
	}
	if d.Intent != "" && d.Work != "" {
		add("%s", d.Work)
	}
	if state := cmp.Or(string(d.IntentState), string(d.WorkState)); state != "" {
		add("-> %s", state)
	}
	if d.Text != "" {
		add("%d bytes, sha256 %.12s", d.TextBytes, d.Text)
	}
	if d.Patch != "" {
		add("-> %s", d.Patch)
	}
	if d.ErrorCode != "" {
		add("%s", d.ErrorCode)
	}
	if len(d.Paths) > 0 {
		add("%s", strings.Join(d.Paths, ", "))
	}
	if d.Effect != "" {
		add("%s", d.Effect)
	}
	if d.Status != "" {
		add("%s", d.Status)
	}
	if d.Outcome != "" {
		add("%s", d.Outcome)
	}
	if d.Termination != "" {
		add("%s", d.Termination)
	}
	if d.ExitCode != nil {
		add("exit %d", *d.ExitCode)
	}
	if d.Signal != "" {
		add("%s", d.Signal)
	}
	if d.State != "" {
		add("-> %s", d.State)
	}
	for _, r := range d.Rules {
		add("[%s]", r)
	}
	if d.Language != "" {
		add("%s,", d.Language)
	}
	if d.Code != "" {
		add("%d bytes, sha256 %.12s", d.CodeBytes, d.Code)
	}
	if d.Subject != "" {
		add("%s", d.Subject)
	}
	if r := d.Removed; r != nil {
		add("%d sessions, %d files of %d bytes, %d runtime sessions, %d bodies, %d blobs of %d bytes",
			r.Sessions, r.Objects, r.Bytes, r.Runtimes, r.Bodies, r.Blobs, r.BlobBytes)
	}
	if d.Reason != "" {
		add("%s", d.Reason)
	}
	return s
}

type auditShowCmd struct {
	Seq int64 `arg:"" help:"Number of the event."`
}

func (s *auditShowCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		events, _, err := cl.Events(ctx, writ.EventFilter{After: s.Seq - 1, Limit: 1})
		if err != nil {
			return err
		}
		if len(events) == 0 || events[0].Seq != s.Seq {
			return &writ.Error{Kind: writ.NotFound, Op: "show event", Msg: fmt.Sprintf("there is no event %d that you may see", s.Seq)}
		}
		return document(e.stdout, events[0])
	})
}

type auditVerifyCmd struct {
	Checkpoint []string `help:"File with a checkpoint that you kept: the log must contain it." type:"existingfile" placeholder:"FILE"`
	JSON       bool     `name:"json" help:"As JSON."`
}

func (v *auditVerifyCmd) Run(ctx context.Context, c *cli, e env) error {
	var anchors []string
	for _, f := range v.Checkpoint {
		b, err := readFile(f, 64<<10)
		if err != nil {
			return err
		}
		anchors = append(anchors, string(b))
	}
	return withTask(ctx, c, e, func(cl *client.Client) error {
		rep, err := cl.Verify(ctx, anchors)
		if err != nil {
			return err
		}
		if v.JSON {
			if err := document(e.stdout, rep); err != nil {
				return err
			}
		} else {
			for _, f := range rep.Faults {
				fmt.Fprintf(e.stdout, "event %d: %s\n", f.Seq, f.Fault)
			}
			if rep.OK {
				fmt.Fprintf(e.stdout, "ok: %d events, root %s\n", rep.Events, rep.Head.Root)
			}
		}
		if !rep.OK {
			return exit(exitFailed)
		}
		return nil
	})
}

type auditCheckpointCmd struct{}

func (*auditCheckpointCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		cp, err := cl.Checkpoint(ctx)
		if err == nil {
			_, err = io.WriteString(e.stdout, cp.Note)
		}
		return err
	})
}

type auditProveCmd struct {
	Seq int64 `arg:"" help:"Number of the event."`
}

func (p *auditProveCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		proof, err := cl.Prove(ctx, p.Seq)
		if err != nil {
			return err
		}
		return document(e.stdout, proof)
	})
}

type auditCheckCmd struct {
	Proof  string `arg:"" help:"File with the proof, or -."`
	Public string `help:"File with the log's public key (audit.pub of its data folder)." required:"" type:"existingfile" placeholder:"FILE"`
}

func (k *auditCheckCmd) Run(e env) error {
	var b []byte
	var err error
	if k.Proof == "-" {
		b, err = io.ReadAll(io.LimitReader(e.stdin, 16<<20))
	} else {
		b, err = readFile(k.Proof, 16<<20)
	}
	if err != nil {
		return err
	}
	var proof writ.AuditProof
	if err := json.Unmarshal(b, &proof); err != nil {
		return &writ.Error{Kind: writ.Invalid, Op: "check proof", Msg: fmt.Sprintf("%s is not a proof: %v", k.Proof, err)}
	}
	public, err := os.ReadFile(k.Public)
	if err != nil {
		return err
	}
	if err := audit.CheckProof(proof, string(public)); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "ok: event %d of a log of %d\n%s\n", proof.Seq, proof.Checkpoint.Size, proof.Record)
	return nil
}

type auditExportCmd struct {
	eventFlags
	Format string `help:"jsonl: the records as they are signed; cloudevents: CloudEvents 1.0." enum:"jsonl,cloudevents" default:"jsonl"`
}

func (x *auditExportCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		return cl.Export(ctx, e.stdout, x.Format, x.filter(0))
	})
}
