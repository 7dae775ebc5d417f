/**
 * Where the repository touches the world outside its seams, and why. Tests, scripts and benchmarks are not
 * asked. An entry that permits nothing any more is reported too.
 */
import type { Permission } from "./seams.ts";

/** The real forms of the seams, and the composition roots. */
export const permissions: readonly Permission[] = [
  {
    files: /^packages\/runtime\/src\/(clock\/system-[a-z-]+|random)\.ts$/,
    may: ["time", "timers", "random"],
    because: "the real Clock and Random",
  },
  {
    files: /^packages\/runtime\/src\/clock\/virtual-clock\.ts$/,
    may: ["timers"],
    because: "virtual time moves only once real input and output that is under way has been delivered",
  },
  {
    files: /^packages\/runtime\/src\/(.*\/)?(kernel|unprivileged|node|real)-[a-z-]+\.ts$/,
    may: ["files", "programs", "network", "process"],
    because: "the real forms of Host, and the lock of a directory",
  },
  {
    files: /^packages\/kube\/src\/(.*\/)?(http|https|undici|kubeconfig|in-cluster)[a-z-]*\.ts$/,
    may: ["network", "files", "process"],
    because: "KubeClient over HTTPS, and the credentials it reads",
  },
  {
    files: /^packages\/csi\/src\/(.*\/)?grpc[a-z-]*\.ts$/,
    may: ["network", "files", "process", "programs"],
    because: "CsiConnection over gRPC, whose sockets are files with a mode",
  },
  {
    files: /^packages\/apiserver\/src\/storage\/disk\/[a-z-]+\.ts$/,
    may: ["files"],
    because: "the durable store: it is the disk",
  },
  {
    files: /^packages\/apiserver\/src\/http\/cluster-credentials\.ts$/,
    may: ["files", "process", "random"],
    because: "keys and tokens on disk; a token must not be guessed, so its bytes never come from a seed",
  },
  {
    files: /^packages\/apiserver\/src\/http\/issue-certificate\.ts$/,
    may: ["random"],
    because: "serial numbers and keys of certificates must not be guessed, so they never come from a seed",
  },
  {
    files: /^packages\/apiserver\/src\/http\/read-definitions\.ts$/,
    may: ["files"],
    because: "definitions that the server is started with, given as files",
  },
  {
    files: /^packages\/apiserver\/src\/custom\/formats\.ts$/,
    may: ["network"],
    because: "isIP looks at a text and at nothing else",
  },
  {
    files: /^packages\/(apiserver|dashboard)\/src\/(.*\/)?http[a-z-]*\.ts$/,
    may: ["network"],
    because: "servers",
  },
  {
    files: /^packages\/dashboard\/src\/http-page-files\.ts$/,
    may: ["files"],
    because: "the files of the dashboard's page",
  },
  {
    files: /^packages\/dashboard\/src\/page\/[a-z-]+\.ts$/,
    may: ["network", "time", "timers"],
    because: "the dashboard's page, which runs in a browser",
  },
  {
    files: /^packages\/local\/src\/((containers|processes|programs)\/|(.*\/)?(http|process)[a-z-]*\.ts$)/,
    may: ["network", "files", "programs", "process"],
    because: "the processes of the local cluster, and its pods",
  },
  {
    files: /^packages\/reference-driver\/src\/disk-cloud\/http-[a-z]+\.ts$/,
    may: ["network", "files", "programs"],
    because: "the disk cloud's server, whose socket is a file with a mode, and its client",
  },
  {
    files: /^packages\/local\/src\/(.*\/)?[a-z-]+-program\.ts$/,
    may: ["time", "timers", "files", "process"],
    because: "what a pod runs: a program of its own",
  },
  {
    files: /^packages\/cli\/src\//,
    may: ["time", "timers", "random", "files", "programs", "network", "process"],
    because: "the composition root: flags to real forms of the seams, and the terminal",
  },
];
