package facts

import "strings"

// Code returns the word for the kind of a server's error, such as NOPERM or OOM: the first of its text. For the error of a
// command within a script, that is the command's word, even if the text begins with "ERR Error running script".
func Code(text string) string {
	switch {
	// Denied by an ACL: since 7.2, and before. Neither text has the code NOPERM.
	case strings.Contains(text, "ACL failure in script"), strings.Contains(text, "The user executing the script can't"):
		return "NOPERM"
	// Before 7.0: "ERR Error running script (call to f_SHA): @user_script:1: @user_script: 1: -OOM command not …"
	case strings.HasPrefix(text, "ERR Error running script "):
		for _, part := range strings.Split(text, ": ")[1:] {
			word, _, _ := strings.Cut(strings.TrimPrefix(part, "-"), " ")
			if len(word) > 2 && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
				return word
			}
		}
	}
	code, _, _ := strings.Cut(text, " ")
	return code
}

// Discreet returns err without the arguments that a server repeats of a command that it does not know: those of AUTH
// and HELLO are user and password.
func Discreet(err error) error {
	if err == nil {
		return nil
	}
	if text, _, repeats := strings.Cut(err.Error(), ", with args beginning with"); repeats {
		return said(text)
	}
	return err
}

// said is an error that a server sent, of a type that go-redis recognises.
type said string

func (s said) Error() string { return string(s) }
func (said) RedisError()     {}
