/** A driver that returns secrets in every text field of the protocol; none of them may be passed on. */
import {
  Controller,
  type CsiServices,
  CsiStatusError,
  create,
  type DescMessage,
  GroupController,
  Identity,
  type MessageInitShape,
  type MessageShape,
  Node,
} from "@longshore/csi";
import { type DescMethodUnary, secretsOfRequest } from "@longshore/csi/transport";
import { placesOfText } from "./planted-texts.ts";

/** The services, and what they have done. */
export interface LeakyServices {
  readonly services: CsiServices;
  /** Where secrets were returned, by RPC: `INTERNAL`, `volume.volume_id`, … */
  readonly leaks: ReadonlyMap<string, readonly string[]>;
  /** RPCs that came with secrets. */
  readonly withSecrets: ReadonlySet<string>;
}

type Request = MessageShape<DescMessage>;
type Handler = (request: Request, signal: AbortSignal) => Promise<MessageInitShape<DescMessage>>;

const services = { identity: Identity, controller: Controller, groupController: GroupController, node: Node };
/** Codes that callers take differently: final, of unknown outcome, infeasible. */
const codes = ["INTERNAL", "UNAVAILABLE", "INVALID_ARGUMENT"] as const;

/**
 * The same services, whose first calls of each RPC return all secrets that the driver has ever received: first in a
 * status of each kind, then at each place of the answer, one call after the other; of an RPC without secrets, in its
 * texts for people.
 */
export function leakyServices(given: CsiServices): LeakyServices {
  const leaks = new Map<string, string[]>();
  const withSecrets = new Set<string>();
  const known = new Set<string>();
  const seenSecrets = () =>
    [...known].map((value) => `${value} ${Buffer.from(value).toString("base64")}`).join(", ");

  const leaking = (method: DescMethodUnary, handler: Handler): Handler => {
    const hasOwn = method.input.fields.some(({ name }) => name === "secrets");
    const places = placesOfText(method.output, "").filter(({ path }) => hasOwn || path.endsWith("message"));
    let calls = 0;
    return async (request, signal) => {
      const own = secretsOfRequest(method.input, request) ?? [];
      if (own.length > 0) withSecrets.add(method.name);
      for (const { value } of own) known.add(value);
      if (known.size === 0 || (hasOwn && own.length === 0)) return handler(request, signal);
      const turn = calls++;
      const note = (where: string) => leaks.set(method.name, [...(leaks.get(method.name) ?? []), where]);
      const code = codes[turn];
      if (code !== undefined) {
        note(code);
        throw new CsiStatusError(code, `no entry with ${seenSecrets()}`);
      }
      const answer = create(method.output, await handler(request, signal));
      const path = places[turn - codes.length]?.path;
      if (path === undefined) return answer;
      note(path);
      const place = placesOfText(method.output, `x-${seenSecrets()}`).find((each) => each.path === path);
      return place?.plantIn(answer) ?? answer;
    };
  };

  const served: Record<string, Record<string, unknown>> = {};
  for (const [name, service] of Object.entries(services)) {
    const handlers = given[name as keyof typeof services] as Readonly<Record<string, Handler>> | undefined;
    if (handlers === undefined) continue;
    const own: Record<string, unknown> = {};
    for (const method of service.methods) {
      const handler = handlers[method.localName];
      if (handler === undefined) continue;
      own[method.localName] = leaking(method as DescMethodUnary, (request, signal) =>
        handler.call(handlers, request, signal),
      );
    }
    served[name] = own;
  }
  return { services: { ...given, ...served } as unknown as CsiServices, leaks, withSecrets };
}
