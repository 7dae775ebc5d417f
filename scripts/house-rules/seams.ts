/**
 * All time, chance and machine enter through the seams of `@longshore/runtime` and the three connections
 * (KubeClient, CsiConnection, DiskCloud). This table says what is forbidden elsewhere, and who may do it.
 */
import { type Finding, isNode, lineAt, type Node, type Source, walk } from "./source.ts";

/** What a file can reach past the seams for. */
export type Reach = keyof typeof forbidden;

interface Forbidden {
  /** Globals (`fetch`), members (`Date.now`) and bare constructions (`new Date()`). */
  readonly globals: readonly string[];
  /** Imports: a module, or `module#name` for one export of it. Types may always be imported. */
  readonly modules: readonly string[];
  readonly instead: string;
}

const forbidden = {
  time: {
    globals: ["Date.now", "new Date()", "Date()", "performance"],
    modules: ["node:perf_hooks"],
    instead: "Clock",
  },
  timers: {
    globals: ["setTimeout", "setInterval", "setImmediate", "AbortSignal.timeout"],
    modules: ["node:timers", "node:timers/promises"],
    instead: "Clock",
  },
  random: {
    globals: ["Math.random", "crypto.randomUUID", "crypto.getRandomValues"],
    modules: ["node:crypto#randomUUID", "node:crypto#randomBytes", "node:crypto#randomInt"],
    instead: "Random",
  },
  files: {
    globals: [],
    modules: ["node:fs", "node:fs/promises"],
    instead: "Host",
  },
  programs: {
    globals: [],
    modules: ["node:child_process", "node:worker_threads", "node:cluster"],
    instead: "Host",
  },
  network: {
    globals: ["fetch", "WebSocket", "EventSource"],
    modules: [
      ...["node:net", "node:http", "node:https", "node:http2", "node:tls", "node:dgram", "node:dns"],
      ...["undici", "fastify", "@grpc/grpc-js"],
    ],
    instead: "KubeClient, CsiConnection or DiskCloud",
  },
  process: {
    globals: ["process", "console"],
    modules: ["node:process", "node:os", "node:readline"],
    instead: "an option, Logger or Host",
  },
} as const satisfies Readonly<Record<string, Forbidden>>;

/** A place where the world outside is touched on purpose. */
export interface Permission {
  /** Matches whole paths relative to the repository. */
  readonly files: RegExp;
  readonly may: readonly Reach[];
  readonly because: string;
}

/** Forbidden uses in one file that no permission covers. `used` collects the permissions that were needed. */
export function reachesPastSeams(
  source: Source,
  permissions: readonly Permission[],
  used: Set<Permission> = new Set(),
): Finding[] {
  const applying = permissions.filter(({ files }) => files.test(source.path));
  return usesOf(source)
    .filter(({ reach }) => {
      const permission = applying.find(({ may }) => may.includes(reach));
      if (permission !== undefined) used.add(permission);
      return permission === undefined;
    })
    .map(({ reach, what, offset }) => ({
      path: source.path,
      line: lineAt(source, offset),
      message: `${what} reaches past the seams (${reach}); use ${forbidden[reach].instead}`,
    }));
}

/** Whether `module` is a file of the package, which is as good as its root; a name in a file (`…#name`) comes with the file. */
const isFileOf = (module: string, packageName: string): boolean =>
  module.startsWith(`${packageName}/`) && !module.includes("#");

interface Use {
  readonly reach: Reach;
  readonly what: string;
  readonly offset: number;
}

function usesOf(source: Source): Use[] {
  const uses: Use[] = [];
  const own = declaredNames(source.program);
  const report = (node: Node, kind: "globals" | "modules", what: string) => {
    for (const [reach, { [kind]: names }] of Object.entries(forbidden)) {
      if ((names as readonly string[]).some((name) => what === name || isFileOf(what, name))) {
        uses.push({ reach: reach as Reach, what, offset: node.start });
      }
    }
  };
  walk(source.program, (node, parent, key) => {
    for (const module of importedFrom(node)) report(node, "modules", module);
    const name = referenced(node, parent, key);
    if (name === undefined || own.has(name)) return;
    report(node, "globals", name);
    if (isNode(parent)) {
      if (parent.type === "MemberExpression" && key === "object") {
        const member = nameOf(parent.property);
        report(node, "globals", name === "globalThis" ? member : `${name}.${member}`);
      }
      const bare = key === "callee" && (parent.arguments as unknown[]).length === 0;
      if (bare && parent.type === "NewExpression") report(node, "globals", `new ${name}()`);
      if (key === "callee" && parent.type === "CallExpression") report(node, "globals", `${name}()`);
    }
  });
  return uses;
}

/** The modules, and `module#name`s, whose values an import or re-export brings in. */
function importedFrom(node: Node): string[] {
  if (node.type === "ImportExpression") return [literal(node.source)];
  const isImport = node.type === "ImportDeclaration" && node.importKind !== "type";
  const isExport = /^Export(Named|All)Declaration$/.test(node.type) && node.exportKind !== "type";
  if (!(isImport || isExport) || !isNode(node.source)) return [];
  const module = literal(node.source);
  const specifiers = ((node.specifiers ?? []) as Node[]).filter(
    (specifier) => specifier.importKind !== "type",
  );
  if (specifiers.length === 0 && ((node.specifiers ?? []) as Node[]).length > 0) return [];
  return [
    module,
    ...specifiers.map((specifier) => `${module}#${nameOf(specifier.imported ?? specifier.local)}`),
  ];
}

/** A module with or without the `node:` scheme is one module. */
function literal(node: unknown): string {
  const value = isNode(node) ? String(node.value) : "";
  return /^(fs|fs\/promises|child_process|net|https?|http2|tls|dgram|dns|os|crypto|timers|process)$/.test(
    value,
  )
    ? `node:${value}`
    : value;
}

/** The name of an identifier that stands for a value here, not for a property, a type or a declaration. */
function referenced(node: Node, parent: Node | undefined, key: string): string | undefined {
  if (node.type !== "Identifier" || parent === undefined) return undefined;
  if (parent.type === "MemberExpression" && key === "property" && parent.computed !== true) return undefined;
  if (key === "key" && parent.computed !== true) return undefined;
  if (
    /^(TS(TypeReference|QualifiedName|TypeQuery|PropertySignature|MethodSignature|FunctionType))$/.test(
      parent.type,
    )
  ) {
    return undefined;
  }
  return nameOf(node);
}

/** Every name that the file declares or imports: such a name is not the global one. */
function declaredNames(program: Node): Set<string> {
  const names = new Set<string>();
  const bind = (pattern: unknown): void => {
    if (!isNode(pattern)) return;
    if (pattern.type === "Identifier") names.add(nameOf(pattern));
    for (const part of [pattern.left, pattern.argument, pattern.value]) bind(part);
    for (const part of [
      ...((pattern.elements ?? []) as unknown[]),
      ...((pattern.properties ?? []) as unknown[]),
    ]) {
      bind(part);
    }
  };
  walk(program, (node) => {
    if (/^Import.*Specifier$/.test(node.type)) bind(node.local);
    if (/^(VariableDeclarator|FunctionDeclaration|ClassDeclaration)$/.test(node.type)) bind(node.id);
    for (const parameter of Array.isArray(node.params) ? node.params : []) bind(parameter);
    if (node.type === "CatchClause") bind(node.param);
  });
  return names;
}

function nameOf(node: unknown): string {
  return isNode(node) ? String(node.name ?? node.value ?? "") : "";
}
