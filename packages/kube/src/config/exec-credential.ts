/**
 * Credentials from a program that the kubeconfig names (Kubernetes documentation, "client-go
 * credential plugins"). Its output is secret and appears in no error. It inherits this process's whole environment, as in
 * every client of Kubernetes: it is the user's own program, and finds there what it identifies the user by.
 */
import { posix } from "node:path";
import { abortable, withDeadline } from "@longshore/runtime";
import { ConfigError, type ConfigHost, type Credential, type CredentialSource } from "./cluster-config.ts";
import type { Fields } from "./fields.ts";

/** Input of the program, and where to find the program. */
export interface ExecContext {
  /** Directory of the kubeconfig; a command with a slash is relative to it. */
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly cluster: { readonly server: string; readonly ca: string | undefined };
}

const DEADLINE_MS = 60_000;
const supportedVersions = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

interface ExecCredential {
  readonly status?: {
    readonly token?: string;
    readonly clientCertificateData?: string;
    readonly clientKeyData?: string;
    readonly expirationTimestamp?: string;
  };
}

interface Cached {
  readonly credential: Credential;
  /** Wall time, as the program returned it. */
  readonly expires: Date | undefined;
}

/** A source that runs the program when there is no credential, or it has expired or was refused. */
export function execCredential(host: ConfigHost, exec: Fields, context: ExecContext): CredentialSource {
  const command = exec.requiredText("command", "name the program that gives the credential");
  const apiVersion = exec.requiredText("apiVersion", `write ${supportedVersions[0]}`);
  if (!supportedVersions.includes(apiVersion)) {
    throw new ConfigError(
      `${exec.where}.apiVersion "${apiVersion}" is not supported: use ${supportedVersions.join(" or ")}`,
    );
  }
  if (exec.text("interactiveMode") === "Always") {
    throw new ConfigError(`${exec.where}.interactiveMode: a program that must ask cannot be used here`);
  }
  const args = exec.list("args").map(String);
  const environment = environmentOf(exec, apiVersion, context);
  const program =
    command.includes("/") && !command.startsWith("/") ? posix.join(context.directory, command) : command;
  const hint = exec.text("installHint");
  let cached: Cached | undefined;
  /** Concurrent callers share one run. */
  let running: Promise<Cached> | undefined;
  const never = new AbortController().signal;

  const run = async (signal: AbortSignal): Promise<Cached> => {
    const result = await host
      .runProgram(program, { args, env: environment, signal })
      .catch((error: unknown) => {
        const remedy = hint ?? "is it installed and in the PATH?";
        throw new ConfigError(`${exec.where}.command: ${command} cannot be run: ${remedy}`, { cause: error });
      });
    if (result.code !== 0) {
      throw new ConfigError(
        `${exec.where}.command: ${command} ended with code ${result.code}: run it by hand`,
      );
    }
    return parseCredential(result.stdout, `${exec.where}.command: ${command}`);
  };

  return {
    async current(clock, parent) {
      const isFresh =
        cached !== undefined &&
        (cached.expires === undefined || cached.expires.getTime() > clock.now().getTime());
      if (isFresh && cached !== undefined) return cached.credential;
      // Not under the caller's signal: others may wait for the same run.
      running ??= withDeadline(clock, DEADLINE_MS, never, run).finally(() => {
        running = undefined;
      });
      cached = await abortable(running, parent);
      return cached.credential;
    },
    refused() {
      cached = undefined;
    },
  };
}

function environmentOf(exec: Fields, apiVersion: string, context: ExecContext): Record<string, string> {
  const environment: Record<string, string> = { ...context.environment };
  for (const entry of exec.list("env")) {
    const { name, value } = entry as { name?: unknown; value?: unknown };
    if (typeof name !== "string") throw new ConfigError(`${exec.where}.env[].name must be a text`);
    environment[name] = String(value ?? "");
  }
  const { server, ca } = context.cluster;
  const cluster = {
    server,
    ...(ca === undefined ? {} : { "certificate-authority-data": Buffer.from(ca).toString("base64") }),
  };
  environment.KUBERNETES_EXEC_INFO = JSON.stringify({
    apiVersion,
    kind: "ExecCredential",
    spec: { interactive: false, ...(exec.flag("provideClusterInfo") ? { cluster } : {}) },
  });
  return environment;
}

function parseCredential(output: string, where: string): Cached {
  let parsed: ExecCredential;
  try {
    parsed = JSON.parse(output) as ExecCredential;
  } catch {
    // The parser's message quotes the output, which is secret.
    throw new ConfigError(`${where}: its output is not JSON`);
  }
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = parsed.status ?? {};
  if (token === undefined && (cert === undefined || key === undefined)) {
    throw new ConfigError(`${where}: its output has neither status.token nor a certificate with its key`);
  }
  return {
    credential: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token.trim()}` }),
      ...(cert === undefined || key === undefined ? {} : { certificate: { cert, key } }),
    },
    expires: expirationTimestamp === undefined ? undefined : new Date(expirationTimestamp),
  };
}
