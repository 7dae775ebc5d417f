/**
 * Cleans everything that a driver says, in one place: no caller has to remember that the text is untrusted.
 *
 * Invariants
 *  - No message of a status or of a condition holds a secret value of the call, nor one of the last calls through the
 *    same connector: a driver may repeat at NodeUnstageVolume what it received at NodeStageVolume.
 *  - Texts are on one line, bounded, and without control characters.
 *  - A call without secrets costs one look at a table, an answer one look at its strings.
 */
import type { DescMessage, DescMethod, MessageShape } from "@bufbuild/protobuf";
import { errorChain, foreignText } from "@longshore/runtime";
import { AnswerError, checkAnswer, credentialFinder } from "../checks/check-answer.ts";
import type { CsiConnection, CsiConnectOptions } from "../csi-connection.ts";
import { CsiCallError } from "../errors.ts";
import { formsOfSecret, maskSecrets, type SecretForms } from "../secrets/mask-secrets.ts";
import { type RequestSecret, secretsOfRequest } from "../secrets/request-secrets.ts";
import { type StreamTransport, snapshotMetadataOver } from "./stream-transport.ts";
import { connectionOver, type UnaryTransport } from "./unary-transport.ts";

/** Values remembered, and their characters in all. */
const rememberedMax = 256;
const rememberedLengthMax = 1024 * 1024;
/** Characters of a value that is not named like a credential. */
const rememberedLengthMin = 8;

/** The secret values of the last calls. They are needed as they are, since a text is searched for them; bounded in number and size. */
export class RecentSecrets {
  /** By value, the one used longest ago first; the forms are made when a text is searched for the first time. */
  readonly #values = new Map<string, SecretForms | undefined>();
  #length = 0;

  /** Remembers the values, in the place of those that were used longest ago. */
  add(secrets: readonly RequestSecret[]): void {
    for (const { value, isCredential } of secrets) {
      // A short value in the same secret as a credential (`admin`, `true`) would be masked in all later texts.
      if (!isCredential && value.length < rememberedLengthMin) continue;
      if (value.length > rememberedLengthMax) continue;
      const forms = this.#values.get(value);
      if (!this.#values.delete(value)) this.#length += value.length;
      this.#values.set(value, forms);
    }
    for (const value of this.#values.keys()) {
      if (this.#values.size <= rememberedMax && this.#length <= rememberedLengthMax) return;
      this.#values.delete(value);
      this.#length -= value.length;
    }
  }

  /** The forms of all of them. */
  forms(): readonly SecretForms[] {
    return [...this.#values].map(([value, known]) => {
      const forms = known ?? formsOfSecret(value);
      if (known === undefined) this.#values.set(value, forms);
      return forms;
    });
  }
}

/** How a transport makes its calls. */
export interface Transports {
  readonly unary: UnaryTransport;
  readonly stream: StreamTransport;
}

/** A connection to a driver, whose answers and failures are seen to as {@link CsiConnectOptions} say. */
export function guardedConnection(
  transports: Transports,
  recent: RecentSecrets,
  line: Pick<CsiConnection, "onLost" | "close">,
  { answers = "checked" }: CsiConnectOptions = {},
): CsiConnection {
  const { unary, stream } =
    answers === "raw"
      ? transports
      : {
          unary: guardedUnary(transports.unary, recent, answers),
          stream: guardedStream(transports.stream, recent, answers),
        };
  return connectionOver(unary, {
    snapshotMetadata: snapshotMetadataOver(stream),
    onLost: line.onLost,
    close: line.close,
  });
}

/** The calls of `send` with their answers checked. */
export function guardedUnary(
  send: UnaryTransport,
  recent: RecentSecrets,
  answers: "checked" | "masked" = "checked",
): UnaryTransport {
  return async (method, request, options) => {
    const guard = new CallGuard(method, request, recent, answers);
    try {
      const answer = await send(method, request, options);
      guard.check(answer);
      return answer;
    } catch (error) {
      throw guard.clean(error);
    }
  };
}

function guardedStream(
  send: StreamTransport,
  recent: RecentSecrets,
  answers: "checked" | "masked",
): StreamTransport {
  return async function* (method, request, options) {
    const guard = new CallGuard(method, request, recent, answers);
    try {
      for await (const answer of send(method, request, options)) {
        guard.check(answer);
        yield answer;
      }
    } catch (error) {
      throw guard.clean(error);
    }
  };
}

const takesAll = () => false;

/** What one call brought, and what may come back of it. */
class CallGuard {
  readonly #method: DescMethod;
  readonly #recent: RecentSecrets;
  readonly #secrets: readonly RequestSecret[];
  readonly #isRefused: (value: string) => boolean;

  constructor(
    method: DescMethod,
    request: MessageShape<DescMessage>,
    recent: RecentSecrets,
    answers: "checked" | "masked",
  ) {
    const secrets = secretsOfRequest(method.input, request);
    if (secrets !== undefined) recent.add(secrets);
    this.#method = method;
    this.#recent = recent;
    this.#secrets = secrets ?? [];
    this.#isRefused =
      secrets === undefined || answers === "masked"
        ? takesAll
        : credentialFinder(method.input, request, secrets);
  }

  /** @throws AnswerError when the answer cannot be used */
  check(answer: MessageShape<DescMessage>): void {
    checkAnswer(this.#method.output, answer, this.#text, this.#isRefused);
  }

  /** The failure without secrets and control characters. The outcome of a call with an unusable answer is unknown. */
  clean(error: unknown): unknown {
    const { name } = this.#method;
    if (error instanceof AnswerError) {
      return new CsiCallError(name, "INTERNAL", `driver bug: the answer cannot be used: ${error.message}`, {
        answered: false,
      });
    }
    if (!(error instanceof CsiCallError)) return error;
    const { rpc, code, detail, answered, hasDetails, cause } = error;
    const masked = this.#text(detail);
    const chain = cause === undefined ? "" : errorChain(cause);
    if (masked === detail && this.#text(chain) === chain) return error;
    // Leave out a cause that contains a secret.
    return new CsiCallError(rpc, code, masked, {
      answered,
      hasDetails,
      ...(this.#text(chain) === chain ? { cause } : {}),
    });
  }

  readonly #text = (text: string): string => {
    if (text === "") return text;
    // Those of this call may have been forgotten, where many were made meanwhile.
    const own = this.#secrets.map(({ value }) => formsOfSecret(value));
    return foreignText(maskSecrets(text, [...own, ...this.#recent.forms()]));
  };
}
