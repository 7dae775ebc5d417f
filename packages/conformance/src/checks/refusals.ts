/**
 * Checks that a table describes: a call with a field missing, or with an id that nothing has, and the codes that
 * it may end with.
 */
import type { GrpcCode } from "@longshore/csi";
import type { Check, Need } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { listed, mustEnd } from "../expect.ts";

/** One line of such a table. */
export interface RefusalCase {
  readonly id: Check["id"];
  /** How the call is made: `CreateVolume without a name`. */
  readonly what: string;
  readonly codes: readonly GrpcCode[];
  readonly needs?: readonly Need[];
  readonly after?: readonly string[];
  /** The calls to make, one after the other. */
  call(context: CheckContext): Calls | Promise<Calls>;
}

type Calls = readonly (() => Promise<unknown>)[];

/** The checks of a table: every call of a line must end with one of its codes. */
export function refusals(spec: string, needs: readonly Need[], cases: readonly RefusalCase[]): Check[] {
  return cases.map(({ id, what, codes, needs: more = [], after, call }) => ({
    id,
    sentence: `${what} ends with ${listed(codes)}`,
    spec,
    needs: [...needs, ...more],
    ...(after === undefined ? {} : { after }),
    async run(context) {
      for (const make of await call(context)) await mustEnd(what, make(), ...codes);
    },
  }));
}
