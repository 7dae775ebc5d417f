/**
 * The connections to registrars, by registration socket. From the first question to the report of the outcome there is
 * one connection, so that the report goes to the registrar that was asked, also when its socket is recreated meanwhile.
 */
import type { CsiConnector, PluginRegistrationClient } from "@longshore/csi";
import type { PluginCandidate } from "./csi-registration-handler.ts";

const getInfoTimeoutMs = 10_000;
const notifyTimeoutMs = 5_000;

/** The plugin that a registrar presents, and its kind, e.g. `CSIPlugin`. */
export interface PresentedPlugin {
  readonly type: string;
  readonly candidate: PluginCandidate;
}

/** How a registration ended, as it is reported to its registrar. */
export interface RegistrationOutcome {
  readonly pluginRegistered: boolean;
  readonly error: string;
}

/** Registrars that are being talked to, at most one a socket. */
export class Registrars {
  readonly #connector: CsiConnector;
  readonly #open = new Map<string, PluginRegistrationClient>();

  constructor(connector: CsiConnector) {
    this.#connector = connector;
  }

  /** Connects and asks which plugin is presented; the connection stays open until `close`. */
  async ask(path: string, signal: AbortSignal): Promise<PresentedPlugin> {
    this.close(path);
    const client = this.#connector.connectRegistration(path);
    this.#open.set(path, client);
    const info = await client.getInfo({ signal, timeoutMs: getInfoTimeoutMs });
    const candidate = {
      name: info.name,
      endpoint: info.endpoint === "" ? path : info.endpoint,
      versions: info.supportedVersions,
    };
    return { type: info.type, candidate };
  }

  /** Reports to the registrar that was asked last how the registration ended. */
  async report(path: string, outcome: RegistrationOutcome, signal: AbortSignal): Promise<void> {
    await this.#open.get(path)?.notifyRegistrationStatus(outcome, { signal, timeoutMs: notifyTimeoutMs });
  }

  /** Ends the conversation; calling it again is harmless. */
  close(path: string): void {
    this.#open.get(path)?.close();
    this.#open.delete(path);
  }

  /** Ends all conversations. */
  closeAll(): void {
    for (const path of [...this.#open.keys()]) this.close(path);
  }
}
