"use strict";
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}
for (const form of document.querySelectorAll("form[data-method]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const output = form.querySelector("pre"), area = form.querySelector("textarea");
    const headers = {}, query = new URLSearchParams();
    let path = form.dataset.path;
    const token = document.getElementById("token").value.trim();
    if (token) headers["Authorization"] = "Bearer " + token;
    for (const input of form.querySelectorAll("input")) {
      if (input.dataset.in === "path") path = path.replace("{" + input.name + "}", encodeURIComponent(input.value));
      else if (input.value === "") continue;
      else if (input.dataset.in === "header") headers[input.name] = input.value;
      else query.append(input.name, input.value);
    }
    if (area) headers["Content-Type"] = "application/json";
    const address = path + (query.size ? "?" + query : "");
    output.hidden = false;
    output.textContent = "Sending…";
    try {
      const answer = await fetch(address, { method: form.dataset.method, headers, body: area ? area.value : undefined });
      const text = await answer.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON: shown as it is */ }
      output.textContent = answer.status + " " + answer.statusText + "\n\n" + shown;
    } catch (error) {
      output.textContent = "The server did not answer: " + error.message;
    }
  });
}
