(()=>{'use strict';
const $=(s,e=document)=>e.querySelector(s),$$=(s,e=document)=>[...e.querySelectorAll(s)];
document.documentElement.classList.remove('nojs');
addEventListener('beforeprint',()=>$$('details').forEach(d=>{d.dataset.o=d.open?1:'';d.open=true}));
addEventListener('afterprint',()=>$$('details').forEach(d=>d.open=!!d.dataset.o));
const me=$('#meta');if(!me)return;
const M=JSON.parse(me.textContent),stacks=$$('.stack'),main=$('#curves');
let C=null,view=[M.va,M.vb];
async function load(){
const bin=Uint8Array.from(atob($('#series').textContent.trim()),c=>c.charCodeAt(0));
const buf=await new Response(new Blob([bin]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
const u=new Uint16Array(buf);C={};
M.cols.forEach((c,k)=>{const raw=u.subarray(k*M.n,(k+1)*M.n);C[c.name]=c.log?Float32Array.from(raw,x=>x?1e-3*2**((x-1)/2520):NaN):raw});
}
const nb='\u00a0',num=n=>Math.round(n).toLocaleString('en-US');
const sig=x=>{const e=Math.floor(Math.log10(Math.abs(x)||1));return x.toFixed(Math.max(0,2-e))};
const ms=v=>v!==v?'–':v<1000?String(+sig(v))+nb+'ms':sig(v/1000)+nb+'s';
const rel=(t,d)=>(t<0?'−':'+')+Math.abs(t).toFixed(d)+nb+'s';
const clock=t=>new Date(Math.round((M.clock0+(t+M.t0)*1000)*1e3)/1e3).toISOString().slice(11,21);
const idx=t=>Math.min(M.n-1,Math.max(0,Math.floor((t+M.t0)/M.dt)));
const range=s=>s===main?view:[+s.dataset.a,+s.dataset.b];
function read(i){
const per=1/M.dt,out={tps:`<b>${num(C.ok[i]*per)}</b>/s`,lat:`p50 <b>${ms(C.p50[i])}</b> · p99 <b>${ms(C.p99[i])}</b> · max <b>${ms(C.max[i])}</b>`};
const e=M.err.filter(c=>C[c][i]).map(c=>c+' '+num(C[c][i])),s=M.err.reduce((a,c)=>a+C[c][i],0);
out.err=`<b>${num(s*per)}</b>/s`+(e.length?' · '+e.join(' · '):'');
out.zoom=`answered <b>${num(C.ok[i])}</b> · failed <b>${num(s)}</b>`+(e.length?' ('+e.join(', ')+')':'')+` · p99 <b>${ms(C.p99[i])}</b>`;
return out;
}
let cur=null,say=0;
function point(t,speak){
cur=t;
for(const s of stacks){
const [a,b]=range(s),c=$('.cur',s),on=t!=null&&t>=a&&t<=b;c.style.display=on?'block':'none';if(!on)continue;
const f=(t-a)/(b-a);c.style.left=f*100+'%';const l=c.firstChild;
l.textContent=rel(t,b-a<20?2:1)+' · '+clock(t);l.style.transform=`translateX(-${f<.12?0:f>.88?100:50}%)`;
}
const o=t==null?null:read(idx(t));
$$('output[data-read]').forEach(e=>e.innerHTML=o?o[e.dataset.read]:e.dataset.rest||'');
if(speak&&o){clearTimeout(say);say=setTimeout(()=>{$('#say').textContent=rel(t,1)+': '+[o.tps,'errors '+o.err,o.lat].join(', ').replace(/<[^>]+>/g,'')},250)}
}
let NB=1200;
function dec(v,i0,i1){const n=i1-i0,m=Math.min(n,NB),r=[];for(let k=0;k<m;k++){const a=i0+Math.floor(k*n/m),z=i0+Math.floor((k+1)*n/m);let lo=1/0,hi=-1/0,s=0,c=0;for(let i=a;i<z;i++){const x=v[i];if(x!==x)continue;if(x<lo)lo=x;if(x>hi)hi=x;s+=x;c++}r.push([a,z,c?lo:NaN,c?hi:NaN,c?s/c:NaN])}return r}
function draw(){
NB=Math.max(200,Math.min(1200,Math.round($('.plot',main).clientWidth)));const [a,b]=view,per=1/M.dt,i0=Math.max(0,Math.floor((a+M.t0)/M.dt)-1),i1=Math.min(M.n,Math.ceil((b+M.t0)/M.dt)+1);
const X=i=>Math.round(((i*M.dt-M.t0)-a)/(b-a)*1e4);
const scale=p=>p.log?v=>(Math.log10(Math.max(v,p.lo))-Math.log10(p.lo))/(Math.log10(p.hi)-Math.log10(p.lo)):v=>v/p.hi;
for(const p of M.paths){
const y0=scale(p),y=v=>Math.round((1-Math.min(1.2,y0(v)))*1e3),g=$('#'+p.id);let d='';
if(p.kind==='bars'){
const m=Math.min(i1-i0,NB);
for(let k=0;k<m;k++){
const q=i0+Math.floor(k*(i1-i0)/m),z=i0+Math.floor((k+1)*(i1-i0)/m);let at=q,w=-1;
for(let i=q;i<z;i++){let e=0;for(const c of M.err)e+=C[c][i];if(e>w){w=e;at=i}}
const v=C[p.col][at];if(!v)continue;let base=0;for(const c of M.err){if(c===p.col)break;base+=C[c][at]}
const x=X(q);d+=`M${x} ${y(base*per)}V${y((base+v)*per)}H${Math.max(X(z),x+14)}V${y(base*per)}Z`;
}
}else{
const f=p.rate?per:1;let on=0,ly;
for(const q of dec(C[p.col],i0,i1)){
const x0=X(q[0]),x1=X(q[1]),v=p.use==='hi'?q[3]:q[4];
if(p.kind==='band'){if(q[1]-q[0]>1&&q[2]===q[2]){const t=y(q[3]*f),u=y(q[2]*f);if(u-t>1)d+=`M${x0} ${t}H${x1}V${u}H${x0}Z`}continue}
if(v!==v){if(on&&p.kind==='area')d+='V1000Z';on=0;continue}
const t=y(v*f);d+=on?(t===ly?'H'+x1:`V${t}H${x1}`):p.kind==='area'?`M${x0} 1000V${t}H${x1}`:`M${x0} ${t}H${x1}`;on=1;ly=t;
}
if(on&&p.kind==='area')d+='V1000Z';
}
g.setAttribute('d',d);
}
for(const e of $$('[data-t],[data-t0]',main)){
const t0=+(e.dataset.t??e.dataset.t0),t1=+(e.dataset.t??e.dataset.t1),vis=t1>=a&&t0<=b;e.style.visibility=vis?'':'hidden';if(!vis)continue;
const l=Math.max(0,(t0-a)/(b-a)),r=Math.min(1,(t1-a)/(b-a));e.style.left=l*100+'%';if(e.classList.contains('fl'))e.classList.toggle('flip',l>.6);if(e.dataset.t0!=null)e.style.width=(r-l)*100+'%';
}
const step=[.1,.2,.5,1,2,5,10,20,30,60,120,300,600,1200,1800,3600].find(s=>(b-a)/s<=9)||7200,ax=$('.xaxis',main);
$$('.xt',ax).forEach(e=>e.remove());
for(let t=Math.ceil(a/step)*step;t<=b-(b-a)*.03;t+=step){const e=document.createElement('span'),z=Math.abs(t)<1e-9,dg=step<1?1:0;e.className='xt'+(z?' z':'');e.style.left=(t-a)/(b-a)*100+'%';
e.textContent=z?'0':step>=120&&step%60===0?(t<0?'−':'+')+Math.abs(t/60)+nb+'min':rel(t,dg);ax.append(e)}
const c0=M.clock0/1e3+M.t0,cs=[1,5,10,30,60,300,600,1800,3600].find(s=>(b-a)/s<=4)||7200;
for(let u=Math.ceil((c0+a)/cs)*cs;u<=c0+b;u+=cs){const e=document.createElement('span');e.className='xt xc';e.style.left=(u-c0-a)/(b-a)*100+'%';e.textContent=clock(u-c0).slice(0,8);ax.append(e)}
}
function zoom(a,b){
const min=20*M.dt;if(b-a<min){const m=(a+b)/2;a=m-min/2;b=m+min/2}
view=[Math.max(M.a,a),Math.min(M.b,b)];draw();point(cur);
$$('.bar button').forEach(e=>e.setAttribute('aria-pressed',String(Math.abs(+e.dataset.a-view[0])<1e-6&&Math.abs(+e.dataset.b-view[1])<1e-6)));
}
function wire(){
for(const s of stacks){
const ov=$('.over',s),at=e=>{const r=ov.getBoundingClientRect(),[a,b]=range(s);return a+(b-a)*Math.min(1,Math.max(0,(e.clientX-r.left)/r.width))};
let from=null;const br=$('.brush',s);
s.addEventListener('pointermove',e=>{const t=at(e);point(t);if(from!=null&&br){const[a,b]=range(s),p=Math.min(t,from),q=Math.max(t,from);br.style.display='block';br.style.left=(p-a)/(b-a)*100+'%';br.style.width=(q-p)/(b-a)*100+'%'}});
s.addEventListener('pointerdown',e=>point(at(e)));s.addEventListener('pointerleave',()=>{if(from==null)point(null)});
if(s===main){
s.addEventListener('pointerdown',e=>{if(e.pointerType==='mouse'&&e.button===0&&e.target.closest('.plot')){from=at(e);s.setPointerCapture(e.pointerId);}});
s.addEventListener('pointerup',e=>{if(from==null)return;const t=at(e),p=Math.min(t,from),q=Math.max(t,from);from=null;br.style.display='none';if(q-p>(view[1]-view[0])*.012)zoom(p,q)});
s.addEventListener('dblclick',()=>zoom(M.a,M.b));
$$('.bar button').forEach(b=>b.addEventListener('click',()=>zoom(+b.dataset.a,+b.dataset.b)));
}
s.addEventListener('keydown',e=>{
const[a,b]=range(s),st=e.shiftKey?10:1,k=e.key;let t=cur==null||cur<a||cur>b?0:cur;
if(k==='ArrowLeft')t-=M.dt*st;else if(k==='ArrowRight')t+=M.dt*st;else if(k==='Home')t=a;else if(k==='End')t=b;
else if(s===main&&(k==='+'||k==='=')){const w=(b-a)/4;return zoom(t-w,t+w)}else if(s===main&&(k==='-'||k==='Escape'||k==='0'))return zoom(M.a,M.b);else return;
e.preventDefault();point(Math.min(b,Math.max(a,t)),true);
});
}
}
load().then(()=>{wire();if($('.plot',main).clientWidth<600&&M.n>600)draw();document.documentElement.dataset.ready=performance.now().toFixed(0)}).catch(()=>document.documentElement.classList.add('nojs'));
})();
