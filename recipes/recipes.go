// Package recipes has what people build from locks and from the guards of package fence: functions to copy and to
// adapt. docs/safety.md, docs/once.md and docs/kinds.md have the reasons. The tests try each of them, and the
// guards on real servers, with holders that are stopped for longer than their lock lasts, lose it, or die.
package recipes
