import assert from "node:assert/strict";
import fc from "fast-check";
import { bashListObjection } from "../../src/policy/bash_allow.ts";
import { shellStubs } from "../support/shell.ts";

const PROGRAMS = ["alpha", "beta", "gamma", "evil", "env", "sudo", "xargs", "ls"];
const LIST_ENTRIES = ["alpha", "beta", "gamma x", "alpha x", "cd", "echo", "printf", "test", "["];

const SPECIAL = (
  "& && | || |& ; ;; ( ) { } < > << >> <<< &> >& 2>&1 $ $( ` \" ' \\ \\\\ # ! ~ * ? [ ] = , ^ % @ : . " +
  '$X $Y "$Z" ${Y} ${Y@P} ${Z:-$(evil)} $((1)) $\'a\' $"a" <(evil) >(evil) $(evil) `evil` {evil,x} ' +
  "if then fi do done for while in case esac time coproc function eval exec command builtin source . " +
  "trap alias env sudo xargs evil ./evil $PATH/evil PATH=. Y=x a[0]=x -v -vPATH -c x y \\;"
).split(" ");
const BLANKS = [" ", " ", " ", "", "\t", "\n", "\r", "\u00a0", "\\\n"];

const glue = fc.constantFrom(...BLANKS);
const piece = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...LIST_ENTRIES) },
  { weight: 3, arbitrary: fc.constantFrom(...SPECIAL) },
  { weight: 1, arbitrary: fc.string({ maxLength: 3 }) },
);
/** Arbitrary pieces. */
const soup = fc.array(fc.tuple(piece, glue), { maxLength: 8 })
  .map((pieces) => pieces.flat().join(""));
/** A harmless chain with arbitrary pieces inserted. */
const spiked = fc.tuple(
  fc.array(
    fc.tuple(
      fc.constantFrom(...LIST_ENTRIES),
      fc.constantFrom(" ", " x ", " 'a b' ", ' "$Y" ', " $X "),
      fc.constantFrom("&&", "||", ";", "|", "&"),
    ),
    { minLength: 1, maxLength: 3 },
  ),
  fc.oneof(fc.constantFrom(...SPECIAL), fc.constant("")),
  fc.nat(),
).map(([parts, spike, place]) => {
  const chain = parts.flat().slice(0, -1).join("");
  const at = place % (chain.length + 1);
  return chain.slice(0, at) + spike + chain.slice(at);
});

for (const [name, text] of [["soup", soup], ["spiked chains", spiked]] as const) {
  Deno.test(`property: a shell runs nothing but the list of what is allowed (${name})`, () => {
    // Names that a careless glob or a relative path would turn into options or programs.
    using place = shellStubs(PROGRAMS, ["evil", "-v", "-vPATH"]);
    const before = place.files();
    let allowed = 0;
    let ran = 0;
    const list = fc.subarray(LIST_ENTRIES, { minLength: 3 });
    fc.assert(
      fc.property(list, text, (list, command) => {
        if (bashListObjection(command, list) !== undefined) return;
        allowed++;
        for (const shell of ["/bin/bash", "/bin/sh"]) {
          for (const [name, first] of place.run(shell, [command])[0]!) {
            const call = `${name} ${first}`;
            ran++;
            const listed = list.some((entry) => call === entry || call.startsWith(`${entry} `));
            assert.ok(listed, `${shell} ran ${call}`);
          }
          assert.deepEqual(place.files(), before, `${shell} changed files`);
        }
      }),
      { numRuns: 1500 },
    );
    assert.ok(allowed > 5 && ran > 5, `${allowed} allowed, ${ran} ran: too few to mean anything`);
  });
}
