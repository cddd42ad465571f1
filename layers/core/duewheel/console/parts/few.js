// Does `work` for each of `things`, a few at a time and in their order, until it is stopped.
export async function fewAtOnce(count, things, isStopped, work) {
  const waiting = [...things];
  const worker = async () => {
    while (waiting.length > 0 && !isStopped()) await work(waiting.shift());
  };
  await Promise.all(Array.from({ length: count }, worker));
}
