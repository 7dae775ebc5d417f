/**
 * The announcement on the Node of the plugins that are about to change over to CSI: from then on the controller begins
 * no in-tree attach of them. Source: docs/decisions/0019-evidence-that-nothing-is-attached.md.
 */
import { type KubeClient, type Node, resources, type Stored } from "@longshore/kube";
import { changingOverAnnotation, pluginsChangingOver } from "@longshore/storage";

/** The announcement of one node. */
export class ChangingOver {
  readonly #kube: KubeClient;
  readonly #name: string;
  readonly #plugins = new Set<string>();
  /** At the start there may be one of an earlier agent. */
  #mayBeThere = true;

  constructor(kube: KubeClient, nodeName: string) {
    this.#kube = kube;
    this.#name = nodeName;
  }

  /** The Node has an announcement, or may have. */
  get mayBeThere(): boolean {
    return this.#mayBeThere;
  }

  /** The Node may be an older one by now. */
  doubt(): void {
    this.#mayBeThere = true;
  }

  /** Announces the plugin beside those announced before. @returns the Node as this request left it */
  announce(inTreeName: string, signal: AbortSignal): Promise<Stored<Node>> {
    // Before the request: it may take effect although its answer is lost.
    this.#mayBeThere = true;
    this.#plugins.add(inTreeName);
    return this.#write([...this.#plugins].sort().join(","), signal);
  }

  /** The CSINode says it now, or it is not to be; also removes what an earlier agent has announced. */
  async end(signal: AbortSignal): Promise<void> {
    const node = await this.#kube.get(resources.nodes, { name: this.#name }, { signal });
    if (pluginsChangingOver(node).length > 0) await this.#write(null, signal);
    this.#plugins.clear();
    this.#mayBeThere = false;
  }

  #write(value: string | null, signal: AbortSignal): Promise<Stored<Node>> {
    const body = { metadata: { annotations: { [changingOverAnnotation]: value } } };
    return this.#kube.patch(resources.nodes, { name: this.#name }, { type: "merge", body }, { signal });
  }
}
