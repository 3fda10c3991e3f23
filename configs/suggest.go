package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"shaperd/internal/near"
)

// synonyms are words of other tools for our keys.
var synonyms = map[string]string{
	"bandwidth": "rate", "guarantee": "rate", "min": "rate", "limit": "ceil", "max": "ceil", "ceiling": "ceil",
	"prio": "priority", "type": "kind", "bind": "listen", "address": "listen", "backend": "upstream", "backends": "upstream",
	"target": "upstream", "upstreams": "upstream", "up": "upload", "down": "download", "auth": "users", "protocol": "proto",
	"ports": "port", "source": "src", "destination": "dst", "tos": "dscp", "parent": "classes", "children": "classes",
}

// suggest returns the keys that may have been meant, and the cure.
func suggest(key string, keys []string) (meant []string, cure string) {
	if word := synonyms[strings.ToLower(key)]; slices.Contains(keys, word) {
		meant = []string{word}
	} else {
		meant = near.Words(key, keys)
	}
	if len(meant) > 0 {
		return meant, "did you mean " + orList(meant) + "?"
	}
	owners := whereIs[key]
	for _, owner := range owners {
		if slices.Contains(keys, owner) {
			return []string{owner}, "it belongs in " + owner
		}
	}
	if len(owners) > 0 {
		return nil, "it belongs in " + orList(owners)
	}
	return nil, "known are " + strings.Join(keys, ", ")
}

// whereIs names the objects that have a key.
var whereIs = func() map[string][]string {
	where := map[string][]string{}
	for _, object := range []struct {
		name string
		spec any
	}{
		{"the file itself", fileSpec{}}, {"a class", classSpec{}}, {"match", matchSpec{}}, {"an interface", interfaceSpec{}},
		{"a relay", relaySpec{}}, {"limits", limitsSpec{}}, {"timeouts", timeoutsSpec{}}, {"admin", adminSpec{}}, {"a schedule", classTimeSpec{}},
	} {
		for _, key := range keysOf(reflect.TypeOf(object.spec)) {
			where[key] = append(where[key], object.name)
		}
	}
	return where
}()

// NoSuch is the error of a name that none of a policy's has: its classes, links
// or relays.
func NoSuch(kind, name string, names []string) error {
	const most = 12 // more is no help
	if len(names) == 0 {
		return fmt.Errorf("there is no %s %q: the policy has none", kind, name)
	}
	meant := near.Words(name, names)
	if len(meant) == 0 { // a part of it, such as a link's without the direction
		meant = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.Contains(n, name) })
	}
	if 0 < len(meant) && len(meant) <= 3 {
		return fmt.Errorf("there is no %s %q; did you mean %s?", kind, name, orList(meant))
	}
	listed := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("there is no %s %q: the policy has %s", kind, name, listed)
}
