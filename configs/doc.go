// Package configs reads policy files. It is strict: what it does not know, or
// what does not fit together, is an error with line, column and cure, and all
// errors of a file come at once. Either everything is right, or there is no
// Policy.
//
//	policy, err := configs.Load("/etc/shaperd/shaperd.yaml")
//	if err != nil {
//		return err // configs.Errors, when it is the file that is wrong
//	}
//	for _, r := range policy.Relays {
//		serve(r.Listen, r.Upload, r.Download, policy.Rules)
//	}
//
// The file is YAML; no YAML leaves the package. Its text becomes nodes with
// their places (yaml.go), these fill the structs of schema.go (decode.go), and
// what the structs say becomes plain values that both datapaths take as they
// are: a shaper.Link for each direction of each place of enforcement, and
// classify.Rules. A percentage is worth what the link makes of it, so every
// link has a class tree of its own.
//
// A Policy has the rates outside of all schedules. At makes that of a time from
// it, with what was set by hand; Next says when schedules change something next.
// Times of a schedule are by the clock on the wall: what it skips begins when it
// has jumped, and what it shows twice holds twice.
//
// A Policy owns nothing that has to be closed. All functions may be called from any goroutine.
//
// The package does not watch files, and does not know whether an address can be
// bound, a name has an address or an interface is there: that is for those who
// put the policy into force.
//
// To add a key, add a field to schema.go, explain it in reference.yaml, use it,
// and write the JSON Schema and the expected errors anew: go test ./configs -update.
package configs
