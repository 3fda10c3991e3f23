package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

const (
	admissionSubject = "admission"
	sharedSubject    = "shared"
)

// checkSecrets looks at the files that the policy names.
func checkSecrets(f *Facts) (list []Finding) {
	p := f.Policy
	for _, s := range []struct{ subject, key, path string }{
		{admissionSubject, "token_file", p.Admission.TokenFile},
		{sharedSubject, "password_file", p.Shared.Redis.PasswordFile},
		{sharedSubject, "ca_file", p.Shared.Redis.CAFile},
	} {
		if s.path == "" {
			continue
		}
		const cost = "shaperd does not start"
		text, err := fs.ReadFile(f.System, strings.TrimPrefix(s.path, "/"))
		switch n := len(strings.TrimSpace(string(text))); {
		case errors.Is(err, fs.ErrPermission):
			list = append(list, info(fmt.Sprintf("%s %s may not be read by who runs doctor", s.key, s.path), "", "").of(s.subject))
		case err != nil:
			list = append(list, problem(fmt.Sprintf("%s %s: %v", s.key, s.path, errors.Unwrap(err)), cost, "write it, readable for the service's user").of(s.subject))
		case n == 0, s.key == "token_file" && n < 16:
			list = append(list, problem(fmt.Sprintf("%s %s has %d characters", s.key, s.path, n), cost, "write a longer one, such as \"openssl rand -hex 32\" makes").of(s.subject))
		default:
			list = append(list, ok("%s %s is there", s.key, s.path).of(s.subject))
		}
	}
	return list
}
