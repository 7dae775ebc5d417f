/** A client as the administrator of a control plane, without the parser of kubeconfigs. */
import { createHttpClient, fixedCredential, type HttpKubeClient } from "@longshore/kube";
import { noMeter, silentLogger, systemClock, systemRandom } from "@longshore/runtime";

/** The machine's clock and entropy, no logs. */
export const env = { clock: systemClock, random: systemRandom, logger: silentLogger, meter: noMeter };

/** How to reach a server. */
export interface ServerAccess {
  readonly server: string;
  /** Certificate authority as PEM. */
  readonly ca: string;
  readonly token: string;
}

/** A client that connects at the first request. */
export function connect({ server, ca, token }: ServerAccess): HttpKubeClient {
  const credentials = fixedCredential({ authorization: `Bearer ${token}` });
  return createHttpClient(env, { server, ca, credentials });
}
