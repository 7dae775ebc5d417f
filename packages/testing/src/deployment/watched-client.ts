/** A client that remembers what it was refused (403), and what it requested. */
import { KubeApiError, type KubeClient } from "@longshore/kube";

/** What was asked, and what of it was refused. */
export interface AccessLog {
  /** `verb plural`, each once. */
  readonly asked: Set<string>;
  /** The server's words. */
  readonly refused: string[];
}

/** Wraps `kube`; `log` receives every call. */
export function watchedClient(kube: KubeClient, log: AccessLog): KubeClient {
  const note = (error: unknown) => {
    if (error instanceof KubeApiError && error.code === 403) log.refused.push(error.message);
  };
  return new Proxy(kube, {
    get(target, name: keyof KubeClient) {
      const member = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        const { plural } = (args[0] ?? {}) as { readonly plural?: string };
        log.asked.add(`${name} ${plural}`);
        const answer = member.apply(target, args);
        if (name === "watch") return watched(answer as AsyncIterable<unknown>, note);
        (answer as Promise<unknown>).catch(note);
        return answer;
      };
    },
  });
}

async function* watched(
  events: AsyncIterable<unknown>,
  note: (error: unknown) => void,
): AsyncGenerator<unknown> {
  try {
    yield* events;
  } catch (error) {
    note(error);
    throw error;
  }
}
