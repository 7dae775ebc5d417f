/**
 * The webhooks that are configured, followed as their configurations change. A request that none of them can concern
 * costs two look-ups: which do is found out once for each resource and operation.
 */
import type { Stored } from "@longshore/kube";
import type { Verb } from "../api/api-request.ts";
import { type Kind, tableKey } from "../api/kind.ts";
import type { KindTable } from "../api/kind-table.ts";
import type { WebhookOperation } from "../registry/registry-context.ts";
import { FollowedTable } from "../storage/followed-table.ts";
import type { Store } from "../storage/store.ts";
import { type Webhook, webhooksOf } from "./webhook.ts";
import { ruleMatches } from "./webhook-matches.ts";

const group = "admissionregistration.k8s.io";
const tables = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] as const;

/** What a verb may come to: an update may create what is not there. */
const operationsOf: Readonly<Partial<Record<Verb, readonly WebhookOperation[]>>> = {
  create: ["CREATE"],
  update: ["UPDATE", "CREATE"],
  patch: ["UPDATE", "CREATE"],
  delete: ["DELETE"],
  deletecollection: ["DELETE"],
};

/** Whether webhooks apply to their own configurations: they do not, or none could be corrected. */
export function isWebhookConfiguration(of: Pick<Kind, "group" | "plural">): boolean {
  return of.group === group && (tables as readonly string[]).includes(of.plural);
}

/** Read and called by the requests of one server. */
export class ConfiguredWebhooks {
  readonly #kinds: KindTable;
  readonly #followed: readonly FollowedTable[];
  /** By the name of the configuration, mutating and validating apart. */
  readonly #configured = [new Map<string, readonly Webhook[]>(), new Map<string, readonly Webhook[]>()];
  #sorted: readonly (readonly Webhook[])[] | undefined;
  /** Whether any concerns a resource, by resource and operation. */
  readonly #concerned = new Map<string, boolean>();

  constructor(store: Store, kinds: KindTable) {
    this.#kinds = kinds;
    this.#followed = tables.map((table, i) => {
      const configured = this.#configured[i] as Map<string, readonly Webhook[]>;
      return new FollowedTable(store, `${table}.${group}`, (_, object, previous) => {
        if (object === undefined) configured.delete((previous as Stored).metadata.name);
        else configured.set(object.metadata.name, webhooksOf(object));
        this.#sorted = undefined;
        this.#concerned.clear();
      });
    });
    kinds.onChange(() => this.#concerned.clear());
  }

  /** Whether a webhook may have to be called for such a request; false as a rule. */
  concern(of: Kind, verb: Verb, subresource: string | undefined): boolean {
    if (this.#isEmpty()) return false;
    const operations = operationsOf[verb];
    if (operations === undefined || isWebhookConfiguration(of)) return false;
    return operations.some((operation) => this.#concernsOperation(of, operation, subresource ?? ""));
  }

  /** Whether a webhook may have to be called for a connection. */
  concernConnection(of: Kind, subresource: string): boolean {
    return !this.#isEmpty() && this.#concernsOperation(of, "CONNECT", subresource);
  }

  /** Whether there are none, now. */
  #isEmpty(): boolean {
    for (const table of this.#followed) table.catchUp();
    return this.#configured.every(({ size }) => size === 0);
  }

  /** All mutating webhooks, in the order in which they are called. */
  get mutating(): readonly Webhook[] {
    return this.#isEmpty() ? [] : (this.#all[0] ?? []);
  }

  /** All validating webhooks, in the order of their names. */
  get validating(): readonly Webhook[] {
    return this.#isEmpty() ? [] : (this.#all[1] ?? []);
  }

  get #all(): readonly (readonly Webhook[])[] {
    this.#sorted ??= this.#configured.map((configured) =>
      [...configured.keys()].sort().flatMap((name) => configured.get(name) ?? []),
    );
    return this.#sorted;
  }

  #concernsOperation(of: Kind, operation: WebhookOperation, subresource: string): boolean {
    const key = `${operation} ${of.plural}.${of.group}/${subresource}`;
    let concerned = this.#concerned.get(key);
    if (concerned === undefined) {
      const kinds = [of, ...equivalentsOf(this.#kinds, of)];
      concerned = this.#all.some((webhooks) =>
        webhooks.some((webhook) =>
          kinds.some((kind) =>
            kind.versions.some((version) =>
              webhook.rules.some((rule) =>
                ruleMatches(rule, { ...kind, version, resource: kind.plural, subresource, operation }),
              ),
            ),
          ),
        ),
      );
      this.#concerned.set(key, concerned);
    }
    return concerned;
  }
}

/** Other kinds that show the same objects (apiserver, EquivalentResourceMapper). */
export function equivalentsOf(kinds: KindTable, of: Kind): readonly Kind[] {
  if (of.virtual === true) return [];
  const key = tableKey(of);
  return kinds
    .all()
    .filter((kind) => tableKey(kind) === key && (kind.group !== of.group || kind.plural !== of.plural));
}
