import { acceptNew } from "./check.ts";
import { setInText, unsetInText } from "./edit.ts";
import { changeConfigFile, readConfigFile } from "./file.ts";
import { parseObject } from "./jsonc.ts";
import { findKey, unknownKey } from "./key_path.ts";

/**
 * Writes one setting into a configuration file, which is made when it is missing. The other settings
 * of the file may be wrong: this is how they are put right.
 *
 * @param name a setting such as `tools.deny`, or a part of an object setting such as `tool_permission.bash`.
 * @throws SvcError (exit 2) for an unknown name, a value of the wrong kind, or a file that is not valid;
 * nothing is written then.
 */
export async function setInFile(file: string, name: string, value: unknown): Promise<void> {
  const place = findKey(name);
  if (place === undefined) throw unknownKey(name);
  const accepted = acceptNew(place, value);
  await changeConfigFile(file, (text) => {
    const changed = setInText(text ?? "{}\n", place, accepted, file);
    parseObject(changed, file); // whatever the edit met, the file stays one that can be read
    return changed;
  });
}

/**
 * Removes a setting, or a name that is no setting, from a configuration file.
 *
 * @returns whether it was there.
 */
export async function unsetInFile(file: string, name: string): Promise<boolean> {
  if (readConfigFile(file) === undefined) return false;
  let found = false;
  await changeConfigFile(file, (text) => {
    if (text === undefined) return undefined;
    const changed = unsetInText(text, name.split("."), file);
    parseObject(changed, file);
    found = changed !== text;
    return changed;
  });
  return found;
}
