// Package secret reads the small files that a policy names: a token, a password,
// certificates.
//
//	text, err := secret.Read("/etc/shaperd/token")
//
// Whatever the name turns out to be, Read returns at once and takes little memory: a
// named pipe that nobody writes to would keep who reads it waiting for ever, and a
// device may have no end. Nothing is left open.
package secret
