import assert from "node:assert/strict";
import fc from "fast-check";
import { bashListObjection } from "../../src/policy/bash_allow.ts";

const PROGRAMS = ["alpha", "beta", "gamma", "evil", "env", "sudo", "xargs", "ls"];
const LIST_ENTRIES = ["alpha", "beta", "gamma x", "alpha x", "cd", "echo", "printf", "test", "["];

/** A folder of programs that only record that they ran, and a folder to run shells in. */
function stubs() {
  const root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "svc-shell-" }));
  const [bin, work, record] = [`${root}/bin`, `${root}/work`, `${root}/record`];
  Deno.mkdirSync(bin);
  Deno.mkdirSync(work);
  const stub = '#!/bin/sh\nprintf "%s\\n" "${0##*/} $1" >> "$RECORD"\n';
  for (const name of PROGRAMS) Deno.writeTextFileSync(`${bin}/${name}`, stub, { mode: 0o755 });
  // Names that a careless glob or a relative path would turn into options or programs.
  for (const name of ["evil", "-v", "-vPATH"]) {
    Deno.writeTextFileSync(`${work}/${name}`, stub, { mode: 0o755 });
  }
  const files = () => Array.from(Deno.readDirSync(work), ({ name }) => name).sort();
  return {
    files,
    /** The programs that a real shell ran, each with its first argument. */
    run(shell: string, command: string): string[] {
      Deno.writeTextFileSync(record, "");
      // Pipes are read to their end, which is when the background commands have ended too.
      new Deno.Command(shell, {
        args: ["-c", command],
        cwd: work,
        clearEnv: true,
        env: { PATH: bin, RECORD: record, HOME: root, X: "; evil", Y: "evil", Z: "$(evil)" },
        stdin: "null",
      }).outputSync();
      return Deno.readTextFileSync(record).split("\n").filter((line) => line !== "");
    },
    [Symbol.dispose]: () => Deno.removeSync(root, { recursive: true }),
  };
}

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
    using place = stubs();
    const before = place.files();
    let allowed = 0;
    let ran = 0;
    const list = fc.subarray(LIST_ENTRIES, { minLength: 3 });
    fc.assert(
      fc.property(list, text, (list, command) => {
        if (bashListObjection(command, list) !== undefined) return;
        allowed++;
        for (const shell of ["/bin/bash", "/bin/sh"]) {
          for (const call of place.run(shell, command)) {
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
