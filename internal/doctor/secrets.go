package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"shaperd/internal/secret"
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
		if s.path != "" {
			list = append(list, f.secret(s.key, s.path).of(s.subject))
		}
	}
	return list
}

// secret is what is found about a file that the policy names with a key.
func (f *Facts) secret(key, path string) Finding {
	const cost = "shaperd does not start"
	name := strings.TrimPrefix(path, "/")
	about, err := fs.Stat(f.System, name)
	if err == nil {
		if unfit := secret.Fits(about); unfit != nil {
			return problem(fmt.Sprintf("%s %s %v", key, path, unfit), cost, "name a small regular file")
		}
	}
	text, err := fs.ReadFile(f.System, name)
	switch n := len(strings.TrimSpace(string(text))); {
	case errors.Is(err, fs.ErrPermission):
		return info(fmt.Sprintf("%s %s may not be read by who runs doctor", key, path), "", "")
	case err != nil:
		return problem(fmt.Sprintf("%s %s: %v", key, path, errors.Unwrap(err)), cost, "write it, readable for the service's user")
	case n == 0, key == "token_file" && n < 16:
		return problem(fmt.Sprintf("%s %s has %d characters", key, path, n), cost, "write a longer one, such as \"openssl rand -hex 32\" makes")
	}
	return ok("%s %s is there", key, path)
}
