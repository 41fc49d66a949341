# A sub-agent in another language: it knows an address, a delegation and a token, and nothing of the store.

import json
import sys
import urllib.error
import urllib.request

job = json.load(sys.stdin)


def send(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": "Bearer " + job["token"], "Content-Type": "application/json"}
    request = urllib.request.Request(job["url"] + path, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


own = "/v1/delegations/" + job["id"]
said = {"capsule": send("GET", own + "/capsule")}
for number, call in enumerate(job["calls"]):
    said[str(number)] = send("POST", own + "/calls", {"callId": "c%d" % number, **call})
said["asked"] = send("POST", own + "/questions", {"callId": "q", "text": "Which shelf?"})
for name, method, path in job["elsewhere"]:
    said[name] = send(method, path, None if method == "GET" else {})
said["report"] = send("POST", own + "/report", {"output": "k was looked at"})
said["after"] = send("POST", own + "/calls", {"callId": "late", **job["calls"][0]})
json.dump(said, sys.stdout)
