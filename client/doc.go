// Package client asks a shaperd for admission: a program that does not send
// through shaperd's relay takes what it sends, or each request that it makes,
// out of the bucket of a class, and so keeps to the same policy.
//
//	c, err := client.New("/run/shaperd/shaperd.sock") // or http://host:port, with a token
//	if err != nil { … }
//	defer c.Close()
//	backup := c.Limiter("backup", client.Options{})
//	_, err = io.Copy(destination, backup.Reader(ctx, file)) // at the class's pace, shared with everybody else
//	api := c.Limiter("api", client.Options{Requests: true}) // of a class that counts requests
//	err = api.Wait(ctx, 1)
//
// Take asks once: a *RefusedError says when to come again. Wait asks until it is
// granted: it obeys what the daemon says, and where nobody answers, or nobody can
// say, it tries again ever later, each time by chance a bit differently, so that a
// thousand clients do not come back at once. It does so for ever, unless its context
// or WithPatience sets an end. A Limiter has a bucket of its own, which it fills in
// larger helpings: most calls need no round trip.
//
// A Client is safe for concurrent use, and so is a Limiter. Close releases the
// connections. What a Limiter has taken and not used is lost, not given back.
//
// The package has no opinion of what is done with the time: it moves no data but
// through Reader and Writer, and does not know the policy.
package client
