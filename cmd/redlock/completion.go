package main

import (
	"fmt"
	"strings"

	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
)

// The scripts read the flags from the help texts, when they complete a flag.
const completionBash = `_redlock() {
	local cur=${COMP_WORDS[COMP_CWORD]} of=${COMP_WORDS[1]} i
	COMPREPLY=()
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			COMPREPLY=($(compgen -c -- "$cur"))
			return
		fi
	done
	[[ $of == elect ]] && of=run
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "@" -- "$cur"))
	elif [[ $of == help ]]; then
		COMPREPLY=($(compgen -W "@ %" -- "$cur"))
	elif [[ $of == completion ]]; then
		COMPREPLY=($(compgen -W "bash zsh fish" -- "$cur"))
	elif [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$(redlock help "$of" 2>/dev/null | grep -oE '^    (-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+') --help" -- "$cur"))
	fi
}
complete -o default -F _redlock redlock
`

const completionZsh = "autoload -U +X bashcompinit && bashcompinit\n" + completionBash

const completionFish = `complete -c redlock -n __fish_use_subcommand -f -a "@"
complete -c redlock -n "__fish_seen_subcommand_from completion" -f -a "bash zsh fish"
complete -c redlock -n "__fish_seen_subcommand_from help" -f -a "@ %"
for of in @
	set -l from $of
	if test $of = elect
		set from run
	end
	for flag in (redlock help $from 2>/dev/null | string match -r '^    (?:-[a-zA-Z], )?--[a-z-]+' | string match -r -- '--[a-z-]+' | string sub -s 3)
		complete -c redlock -n "__fish_seen_subcommand_from $of" -l $flag
	end
end
`

// completion is redlock completion, for these verbs and topics of redlock help.
func completion(c *console.Console, verbs, topics, args []string) error {
	f := flags.New("completion")
	args, err := f.Parse(args)
	if err != nil {
		return err
	}
	texts := map[string]string{"bash": completionBash, "zsh": completionZsh, "fish": completionFish}
	text := ""
	if len(args) == 1 {
		text = texts[args[0]]
	}
	if text == "" {
		return exit.Fail(exit.Usage, "for bash: . <(redlock completion bash), in ~/.bashrc", "completion is for bash, zsh or fish, and was asked for %q", strings.Join(args, " "))
	}
	fmt.Fprint(c.Stdout, strings.NewReplacer("@", strings.Join(verbs, " "), "%", strings.Join(topics, " ")).Replace(text))
	return nil
}
