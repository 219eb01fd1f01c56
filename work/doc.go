// Package work is how a person steers an agent that works in a workspace: pieces of
// work that the agent opens and finishes, and instructions ("intents") that a person
// writes, queues and orders, and that the agent claims one by one (spec/02 §10).
//
// It has two sides. Agents get [Service.Open], [Service.Status], [Service.ClaimNext],
// [Service.Complete], [Service.Finish] and [Service.Hint]: a work is for whoever may
// read in its workspace, as policy decides now. The inbox, which is everything else, is
// for people: operators, for the works of their tenant, and the owner of the data
// folder. An agent's key opens no inbox, so no agent reads a draft.
//
// It promises:
//
//   - The state machine of spec/02 §10, each step a compare-and-set in one transaction
//     with its event in the audit log. Two who claim at once get two intents; what is
//     claimed does not change any more; a work with claimed or pending instructions does
//     not close.
//   - Every change of a work or one of its intents raises the work's queue_revision.
//     Every change of an intent's text, state or work raises its own revision, but for
//     claiming it: an agent gets the revision that its author saw.
//   - A work is its workspace's as it was when it was opened: tenant, id and root. The
//     same id on another folder has other works.
//   - Events hold ids, states, digests and sizes; never the text of an intent. Hints hold
//     counts.
//   - Bounds: of texts, of open works and of open intents in one workspace. The notice of a
//     stop is not refused for them.
//
// It refuses to know how processes are ended ([Stopper]) and what policy says
// ([Workspaces]). Hostile inputs: ids, titles and outcomes come from agents as they
// are. The texts of intents come from people, and are for agents to read as
// instructions; nobody else may write them.
package work
