/** Objects in which every member that a kind's message knows has a value, no two of them alike. */
import { messageFields, messageOfKind } from "../schema/message-fields.ts";
import { structOf } from "../schema/schema.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";

/** How often a type is gone into within itself. */
const nestedMost = 1;

/**
 * The object of that kind, with what that version of Kubernetes has of it. Its values mean nothing: it is for reading
 * and writing, and not for being accepted.
 */
export function fullObject(
  { group, kind }: { readonly group: string; readonly kind: string },
  version: string,
  emulated: EmulatedVersion,
): Record<string, unknown> {
  let count = 0;
  const next = () => ++count;
  const valueFor = (type: string, within: readonly string[]): unknown => {
    switch (type) {
      case "string":
        return `s${next()}`;
      case "bytes":
        return Buffer.from(`b${next()}`).toString("base64");
      case "bool":
        return true;
      case "int32":
      case "int64":
        return next();
      case "meta.v1.Time":
        return `2020-01-01T00:${sixty(next())}Z`;
      case "meta.v1.MicroTime":
        return `2020-01-01T00:${sixty(next())}.000001Z`;
      case "api.resource.Quantity":
        return String(next());
      case "util.intstr.IntOrString":
        return next();
      case "meta.v1.FieldsV1":
        return { "f:metadata": { "f:labels": { [`f:l${next()}`]: {} } } };
      case "runtime.RawExtension":
        return { member: next() };
      default:
        return membersOf(type, within);
    }
  };
  const membersOf = (message: string, within: readonly string[], struct = message): unknown => {
    const fields = messageFields(message);
    // A named list type of Go (Verbs, ExtraValue) is a message with items.
    const [only] = fields;
    if (fields.length === 1 && only?.form === "list" && structOf(message) === undefined) {
      return [valueFor(only.type, within), valueFor(only.type, within)];
    }
    const members: Record<string, unknown> = {};
    for (const { name, type, form, inlined } of fields) {
      if (!emulated.hasField(struct, name)) continue;
      if (within.filter((outer) => outer === type).length > nestedMost) continue;
      const inner = [...within, type];
      if (inlined) Object.assign(members, membersOf(type, inner, struct));
      else if (form === "list") members[name] = [valueFor(type, inner), valueFor(type, inner)];
      else if (form === "map") members[name] = { a: valueFor(type, inner), b: valueFor(type, inner) };
      else members[name] = valueFor(type, inner);
    }
    return members;
  };
  const apiVersion = group === "" ? version : `${group}/${version}`;
  return { ...(membersOf(messageOfKind(group, kind, version), []) as object), apiVersion, kind };
}

/** Minutes and seconds. */
function sixty(n: number): string {
  const two = (part: number) => String(part % 60).padStart(2, "0");
  return `${two(Math.floor(n / 60))}:${two(n)}`;
}
