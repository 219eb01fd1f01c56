// Package agents has coding agents work through the real program. It has tests only.
//
// They build writ, start `writ mcp` or `writ serve` on a data folder of their own, and
// call its tools over the protocol as an agent's client does, with the SDK of the
// protocol's makers. One agent does a whole piece of work: it clones a repository, finds a
// failing test, mends it and runs it to green, while its user agrees to every step. Others
// do all that agents do at once, for as long as one likes, and nothing may be left of it.
//
// They promise to find a step of such work that the tools do not carry, and what piles up
// in server, runner or machine. They refuse to know how the program does it: what they see
// is its tools, its commands and /proc. None of their inputs are hostile.
//
// WRIT_SOAK sets how long the latter takes, as 30m: half a minute if unset, three minutes
// where WRIT_REQUIRE is set.
package agents
