package mcp

import (
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
)

// Extend has every connection of s say that it is capable of caps, and offer what
// change and add put there beside the product's tools. It must be called before s
// serves.
func (s *Server) Extend(caps *sdk.ServerCapabilities, change func(*sdk.ServerOptions), add func(*sdk.Server)) {
	s.capabilities = caps
	s.newSDK = func(impl *sdk.Implementation, opt *sdk.ServerOptions) *sdk.Server {
		change(opt)
		srv := sdk.NewServer(impl, opt)
		add(srv)
		return srv
	}
}

// SealState and OpenState keep text in the state that clients keep for the server.
func (s *Server) SealState(text string) string {
	return s.seal.close(writ.ApprovalID(text), writ.Principal{}, "", time.Now().Add(stateTime))
}

func (s *Server) OpenState(sealed string) (text string, err error) {
	st, err := s.seal.open(sealed, writ.Principal{}, "", time.Now())
	return string(st.Approval), err
}
