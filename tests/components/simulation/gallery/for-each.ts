/** How many processes there are at once. */
const atOnce = 2;

/** Does the work for each of the items, for a few of them at a time. */
export async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
