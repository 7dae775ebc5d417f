/** `longshore assess --watch`: the report, then a line for each finding that comes or goes, and figures for Prometheus. */
import type { Assessment, AssessmentFinding, Changes, WatchClusterOptions } from "@longshore/migration";
import { foreignText } from "@longshore/runtime/basics";
import { type ClusterFlags, withCluster } from "../cluster-access.ts";
import { InterruptedError, makeOutputOptional, UsageError } from "../exit.ts";
import type { Answer, Routes } from "./sidecars/serve-http.ts";

/** The flags that watching takes, and those that do not go with it. */
export interface WatchFlags extends ClusterFlags {
  readonly filename?: readonly string[];
  readonly diff?: string;
  readonly output?: readonly string[];
  readonly checkSecrets?: true;
  readonly metricsAddress?: string;
}

/** Follows the cluster until Ctrl-C, which is its ordinary end: 0. */
export async function watchAssessment(
  flags: WatchFlags,
  options: Omit<WatchClusterOptions, "onAssessment">,
  streams: { readonly stdout: { write(text: string): unknown } },
  signal: AbortSignal,
): Promise<number> {
  refuseOthers(flags);
  makeOutputOptional();
  const { renderReport, watchCluster } = await import("@longshore/migration");
  const routes: Routes = new Map();
  let figures = "";
  routes.set(
    "/metrics",
    async (): Promise<Answer> => ({
      status: figures === "" ? 503 : 200,
      body: figures === "" ? "the cluster is being read" : figures,
      contentType: "text/plain; version=0.0.4; charset=utf-8",
    }),
  );
  const onAssessment = (assessment: Assessment, changes: Changes | undefined) => {
    figures = renderReport("prometheus", assessment);
    streams.stdout.write(
      changes === undefined ? renderReport("table", assessment) : changeText(assessment, changes),
    );
  };
  try {
    await withCluster(flags, "", async (env) => {
      const server = await metricsServer(flags.metricsAddress, routes);
      try {
        await watchCluster(env, { ...options, onAssessment }, signal);
      } finally {
        await server?.stop();
      }
    });
  } catch (error) {
    if (!signal.aborted || !(signal.reason instanceof InterruptedError)) throw error;
  }
  return 0;
}

function refuseOthers(flags: WatchFlags): void {
  const others = {
    "--filename": flags.filename,
    "--diff": flags.diff,
    "--output": flags.output,
    "--check-secrets": flags.checkSecrets,
  };
  for (const [flag, value] of Object.entries(others)) {
    if (value !== undefined) throw new UsageError(`${flag}: it does not go with --watch, leave one out`);
  }
}

/** A port without a host is one of this machine. The log line says where it listens. */
async function metricsServer(address: string | undefined, routes: Routes) {
  if (address === undefined) return undefined;
  const { createLogger } = await import("@longshore/runtime");
  const { serveHttp } = await import("./sidecars/serve-http.ts");
  const port = /^:?(\d+)$/.exec(address)?.[1];
  const logger = createLogger({ format: "human", level: "info" });
  return serveHttp(logger, "--metrics-address", port === undefined ? address : `127.0.0.1:${port}`, routes);
}

function changeText({ at, verdict, targetVerdict }: Assessment, { added, gone }: Changes): string {
  const line = (sign: string, { code, severity, object, evidence }: AssessmentFinding) =>
    `  ${sign} ${code} ${severity}: ${foreignText(object)}: ${foreignText(evidence)}\n`;
  const target = targetVerdict === undefined ? "" : `, target ${targetVerdict}`;
  return [
    `${at.toISOString()} now ${verdict}${target}\n`,
    ...added.map((finding) => line("+", finding)),
    ...gone.map((finding) => line("-", finding)),
  ].join("");
}
