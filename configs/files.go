package configs

// A File is one that the policy names, of the host that runs it.
type File struct {
	Key, Path string // token_file and so on
	at        Error
}

// Files are those that the policy names. They are not read here: a policy may be
// checked on another host than the one that runs it.
func (p *Policy) Files() (all []File) {
	s := p.file.spec
	for _, named := range []struct {
		key  string
		path *value[filePath]
	}{
		{"password_file", &s.Shared.v.PasswordFile},
		{"ca_file", &s.Shared.v.CAFile},
		{"token_file", &s.Admission.v.TokenFile},
	} {
		if !named.path.given() {
			continue
		}
		at := named.path.at.place
		one := Error{File: p.Name, Line: at.line, Column: at.column, width: at.width}
		one.show(p.file.lines[at.line-1])
		all = append(all, File{named.key, string(named.path.v), one})
	}
	return all
}

// Wrong returns what is wrong with the file as an error at the place that names it.
func (f File) Wrong(message, cure string) *Error {
	e := f.at
	e.Message, e.Cure = message, cure
	return &e
}
