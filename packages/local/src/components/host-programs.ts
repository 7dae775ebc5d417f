/** A host that runs programs in another way than by itself. */
import type { Host } from "@longshore/runtime";

/** The host as it is, but for its programs. */
export function withPrograms<H extends Host>(host: H, runProgram: Host["runProgram"]): H {
  return new Proxy(host, {
    get(target, property) {
      if (property === "runProgram") return runProgram;
      const member = Reflect.get(target, property, target) as unknown;
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
