// Package auth turns credentials into principals: the API keys of identities and
// operators, the tokens that a front end signs for its users, and the user behind a
// unix socket.
//
// A key is a token "writ_ID_SECRET": ID is 16 characters that name the key and are
// not secret, SECRET is 32 random bytes in base64url. Only the SHA-256 of SECRET is
// kept, so the token is shown once, when the key is made. 256 random bits need no
// salt and no slow hash, and cannot be guessed at any rate.
//
// It promises that a principal comes only from a live key of a live subject, with
// the rights that the subject has now; that a caller cannot tell why a token was
// refused; and that neither a token nor a part of SECRET is in any error. It refuses
// to know where keys and subjects are kept (Keys, Subjects), what a principal may
// do, and HTTP.
//
// Failures are limited per key id in fixed memory: beyond the limit they are
// answered Exhausted instead of Unauthenticated, so that who records refusals can
// leave those out. The right secret is accepted all the same, since ids are not
// secret: else whoever knows an operator's could lock them out of denying what they
// must deny.
//
// A front end's token (Tokens) is a JWT that lives for minutes, and needs no record
// here: who holds a configured key says who the user is, for the tenants that the key
// is bound to. An algorithm belongs to a key and is never the token's choice; a token
// has one spelling, and no name in it stands twice. Claims are refused, never repaired.
// Package jose checks the signature and reads keys; everything else about a token is
// decided here.
//
// Those keys come from the configuration, from files, and from an address. That is
// fetched at most once in ten seconds, whatever tokens come, and keeps nobody waiting for
// long whose key it had.
//
// A Front says who sends a request of the code interpreter's API: by token, or as its
// deployment is configured, by the front end's word or as one user for all.
//
// Hostile input: keys and tokens, the headers that carry them, and what the address
// of keys answers.
package auth
