// Lets nothing be begun twice: while `work` is under way, asking for it again does nothing.
export function once(work) {
  let isUnderWay = false;
  return async (...given) => {
    if (isUnderWay) return;
    isUnderWay = true;
    try {
      await work(...given);
    } finally {
      isUnderWay = false;
    }
  };
}
