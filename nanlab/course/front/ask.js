// Questions to the kernel, one at a time: while one is under way, a newer one about the same control replaces the one
// that waits, so that a dragged slider never builds up a backlog.

const PATIENCE = 4000; // milliseconds

function asker(model, silent, gone) {
  const waiting = new Map();
  const view = Math.random().toString(36).slice(2);
  let sent = 0;
  let underWay = null;
  let timer = null;

  function next() {
    if (underWay || !waiting.size) return;
    const [key, event] = waiting.entries().next().value;
    waiting.delete(key);
    underWay = { key, ticket: `${view}-${++sent}` };
    timer = setTimeout(() => silent(true), PATIENCE);
    try {
      model.send({ ...event, ticket: underWay.ticket });
    } catch {
      gone();
    }
  }
  function answered(message) {
    if (message.answered !== underWay?.ticket) return;
    clearTimeout(timer);
    silent(false);
    underWay = null;
    next();
  }
  model.on("msg:custom", answered);
  return {
    ask(key, event) {
      waiting.delete(key);
      waiting.set(key, event);
      next();
    },
    busyWith: (key) => waiting.has(key) || underWay?.key === key,
    stop() {
      clearTimeout(timer);
      model.off("msg:custom", answered);
    },
  };
}
