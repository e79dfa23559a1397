// Search where the site is opened from disk: a browser starts no worker there, so the worker's script runs in a frame
// that is not shown. Frame and page send each other messages as a worker and its page do.
"use strict";

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.unsent = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.addEventListener("load", () => {
        this.inside = frame.contentWindow;
        for (const data of this.unsent.splice(0)) this.postMessage(data);
      });
      // the frame finds its way back through the page that holds it
      const name = `worker${document.querySelectorAll("iframe").length}`;
      window[name] = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      frame.srcdoc =
        `<script>postMessage = (data) => parent.${name}(data);<\/script>` + `<script src="${new URL(url, location)}"><\/script>`;
      document.body.append(frame);
    }

    postMessage(data) {
      if (this.inside) this.inside.dispatchEvent(new MessageEvent("message", { data }));
      else this.unsent.push(data);
    }

    terminate() {}
  };
}
