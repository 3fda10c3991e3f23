// Package api has programs and reverse proxies ask an Admission over HTTP:
//
//	api.Mount(mux, a)                                    // beside other requests
//	handler := api.Authorize(a, mux)                     // and in front of them
//	server, err := api.Listen(address, token, a)         // or on an address of its own
//	if err != nil { … }
//	err = server.Run(ctx)
//
// A take is a POST with a small JSON object, answered with 200, or 429 and
// Retry-After; authorize is for proxies that ask before they pass a request on,
// with whatever method and path that has. Both say in headers what is left, as the
// IETF's draft of RateLimit headers (draft-ietf-httpapi-ratelimit-headers-10) has it.
//
// Whoever may use a mux, may take. A listener asks each client for a token; it
// serves nothing else. A Server owns its listener. Everything may be called from
// any goroutine. The package decides nothing.
package api
