package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"writ/client"
	"writ/policy"
)

type policyCmd struct {
	Test    policyTestCmd    `cmd:"" help:"Check the policy folder and run the examples beside it."`
	Explain policyExplainCmd `cmd:"" help:"Say what would be decided about a program, by which rules, and which nearest rule would change it."`
	Schema  policySchemaCmd  `cmd:"" help:"Print the schema that rules are checked against: what may ask, for what, and what is known of it."`
}

type policySchemaCmd struct{}

// Run needs neither a server nor a data folder.
func (*policySchemaCmd) Run(e env) error {
	_, err := fmt.Fprint(e.stdout, policy.Schema())
	return err
}

type policyTestCmd struct {
	Dir string `arg:"" optional:"" help:"The policy folder; by default that of the data folder." type:"existingdir"`
}

// Run needs no server: it reads files and decides.
func (p *policyTestCmd) Run(c *cli, e env) error {
	dir := p.Dir
	if dir == "" {
		cfg, err := loadConfig(c)
		if err != nil {
			return err
		}
		dir = cfg.PolicyDir(c.Data)
	}
	set, err := loadPolicy(dir)
	if err != nil {
		return err
	}
	examples, err := policy.ExamplesFromFS(os.DirFS(dir))
	if err != nil {
		return err
	}
	results, err := set.Check(examples)
	if err != nil {
		return err
	}
	failed := 0
	for _, r := range results {
		if r.OK {
			continue
		}
		failed++
		fmt.Fprintf(e.stdout, "%s: %s: %s\n", r.File, r.Name, r.Fault)
	}
	fmt.Fprintf(e.stdout, "%d examples, %d failed; policy %s\n", len(results), failed, set.Version())
	if failed > 0 {
		return exit(exitFailed)
	}
	return nil
}

type policyExplainCmd struct {
	runCmd
}

func (p *policyExplainCmd) Run(ctx context.Context, c *cli, e env) error {
	req, err := p.request(e)
	if err != nil {
		return err
	}
	return withTask(ctx, c, e, func(cl *client.Client) error {
		raw, err := cl.Explain(ctx, req)
		if err != nil {
			return err
		}
		if p.JSON {
			return document(e.stdout, raw)
		}
		var x policy.Explanation
		if err := json.Unmarshal(raw, &x); err != nil {
			return fmt.Errorf("read explanation: %w", err)
		}
		return explain(e, x)
	})
}

func explain(e env, x policy.Explanation) error {
	pairs := []string{"decision", string(x.Decision.Effect), "reason", x.Decision.Reason, "policy", string(x.Decision.Policy)}
	for _, r := range x.Decision.Rules {
		pairs = append(pairs, "decided by", fmt.Sprintf("%s: %s", r.Effect, r))
	}
	for _, r := range x.Matched {
		pairs = append(pairs, "matched", fmt.Sprintf("%s: %s", r.Effect, r))
	}
	if x.Nearest != nil {
		pairs = append(pairs, "nearest rule", fmt.Sprintf("%s: %s", x.Nearest.Rule.Effect, x.Nearest.Rule))
		for _, f := range x.Nearest.Failed {
			pairs = append(pairs, "  did not hold", f)
		}
	}
	return fields(e.stdout, pairs...)
}

type versionCmd struct {
	JSON bool `name:"json" help:"As JSON."`
}

func (v *versionCmd) Run(e env) error {
	rev := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				rev = s.Value
			}
		}
	}
	if v.JSON {
		return document(e.stdout, map[string]string{"version": version, "revision": rev, "go": runtime.Version()})
	}
	return fields(e.stdout, "writ", version, "revision", rev, "go", runtime.Version())
}
