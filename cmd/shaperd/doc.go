// Shaperd is the network QoS daemon and the commands around it:
//
//	shaperd run                                  serve, with the built-in policy if there is no other
//	shaperd check shaperd.yaml                   is the policy in order, and what does it say
//	shaperd explain shaperd.yaml --dst :443      which class takes this flow, and why
//	shaperd help
//
// Each command has a file with a function that makes it, newRunCmd and so on;
// newRootCmd lists them. A command reads its flags and files, calls one function
// of a package and prints. It writes to the streams it was given and returns an
// error; only main exits: 0 when all is well, 1 for an error, 2 for wrong usage.
package main
