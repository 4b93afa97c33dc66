// Lets the search work where the site is read from a folder. There a browser fetches no file and starts no worker: the index comes as a
// script (site_hooks.py writes it), and the worker's script runs in a frame.
if (location.protocol === "file:") {
  document.write('<script src="' + new URL("search_index.js", document.currentScript.src) + '"><\/script>');

  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = new URL(url, location);
      const loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      inside.document.body.appendChild(script);
      this.postMessage = (data) => loaded.then(() => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
